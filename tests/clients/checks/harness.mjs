// What the checks of the npm clients share; harness.py says what is printed.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

export const BASE = process.env.MOCK_URL + "/v1";
export const KEY = process.env.MOCK_KEY;
export const MODEL = process.env.MOCK_MODEL;
export const TOKENS = 24;
export const QUESTION = "How is the weather in Paris?";

const checks = [];

/** Register a check for one cell of the matrix. */
export function check(row, feature, run) {
  checks.push({ row, feature, run });
}

/** What the server answers to one user message, asked over plain HTTP: equal in every dialect. */
export async function answer(text) {
  const reply = await fetch(BASE + "/chat/completions", {
    method: "POST",
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ model: MODEL, messages: [{ role: "user", content: text }] }),
  });
  return (await reply.json()).choices[0].message.content;
}

/** The arguments of a call of `get_weather`. */
export function checkWeather(given) {
  assert.deepEqual(Object.keys(given).sort(), ["city", "unit"]);
  assert.equal(typeof given.city, "string");
  assert.ok(["celsius", "fahrenheit"].includes(given.unit));
}

/** A document with a name, an age and tags. */
export function checkPerson(given) {
  assert.deepEqual(Object.keys(given).sort(), ["age", "name", "tags"]);
  assert.equal(typeof given.name, "string");
  assert.ok(Number.isInteger(given.age));
  assert.ok(given.tags.every((tag) => typeof tag === "string"));
}

/** Run the checks and print what came of them. */
export async function main(...packages) {
  const versions = {};
  for (const name of packages) {
    const file = new URL(`node_modules/${name}/package.json`, import.meta.url);
    versions[name] = JSON.parse(readFileSync(file)).version;
  }
  console.log(JSON.stringify({ versions }));
  for (const { row, feature, run } of checks) {
    const start = performance.now();
    let problem = "";
    try {
      await run();
    } catch (error) {
      problem = String(error?.stack ?? error);
    }
    const seconds = Math.round(performance.now() - start) / 1000;
    console.log(JSON.stringify({ row, feature, problem, seconds }));
  }
}
