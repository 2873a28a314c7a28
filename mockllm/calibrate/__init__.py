"""Finds how many paced streams this machine can hold: `python -m mockllm calibrate`."""
