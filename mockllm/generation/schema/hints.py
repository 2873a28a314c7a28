"""Plausible words and numbers by the name of a property.

A name is cut into words (`start_date`, `startDate`, `START-DATE` alike); the last word that has an
entry decides, but a `name` is the name of what the word before says (`branch_name`). The tables hold a
few dozen entries: enough for a tool call to look like one.
"""

from __future__ import annotations

import re
from functools import lru_cache

WORDS = (
    "example", "summary", "report", "sample", "update", "project", "review", "draft", "result", "note",
    "release", "status", "design", "budget", "forecast", "meeting", "garden", "river", "signal", "window",
)  # fmt: skip

TEXTS: dict[str, tuple[str, ...]] = {
    "city": ("Paris", "Tokyo", "Nairobi", "Lima", "Oslo", "Toronto", "Hanoi", "Lisbon"),
    "location": ("Paris, France", "Tokyo, Japan", "San Francisco, CA", "Nairobi, Kenya", "Lisbon, Portugal"),
    "country": ("France", "Japan", "Kenya", "Peru", "Norway", "Canada", "Vietnam"),
    "name": ("Alex Martin", "Maria Silva", "Chen Wei", "Noor Haddad", "Ines Laurent", "Omar Diallo"),
    "title": ("Weekly report", "Release notes", "Project plan", "Open questions", "Meeting summary"),
    "email": ("alex@example.com", "maria@example.org", "chen@example.net", "noor@example.com"),
    "url": ("https://example.com/docs", "https://example.org/news", "https://example.com/items/42"),
    "date": ("2024-03-15", "2024-07-01", "2025-01-20", "2025-09-30"),
    "time": ("09:30", "14:00", "18:45", "07:15"),
    "timezone": ("Europe/Paris", "Asia/Tokyo", "America/New_York", "UTC"),
    "id": ("a1b2c3", "item-42", "x7k9q2", "rec-1009", "u-5521"),
    "query": ("latest sales figures", "weather this week", "open issues", "vector search", "release notes 2025"),
    "path": ("/data/report.txt", "src/main.py", "/tmp/notes.md", "docs/index.md"),
    "file": ("report.txt", "notes.md", "main.py", "data.csv"),
    "language": ("en", "fr", "ja", "pt", "de"), "currency": ("USD", "EUR", "JPY", "GBP"),
    "unit": ("celsius", "metric", "km", "kg"), "color": ("red", "green", "blue", "orange"),
    "phone": ("+1-202-555-0143", "+1-202-555-0178", "+44 20 7946 0018"),
    "address": ("12 Harbour Street", "8 rue des Lilas", "221 Main Street"), "street": ("Main Street", "Harbour Road"),
    "zip": ("75001", "94105", "10115"), "code": ("A12", "X-204", "B7", "QZ9"),
    "description": ("A short description of the item.", "What changed and why.", "Notes from the last review."),
    "message": ("Hello, how can I help?", "The report is ready.", "Please see the attached notes."),
    "text": ("The quick brown fox jumps over the lazy dog.", "All tests pass.", "A few words of text."),
    "content": ("# Notes\n\nA first draft.", "All checks passed.", "Hello, world."),
    "owner": ("octo-team", "alex", "platform"), "repo": ("website", "api-server", "docs"),
    "user": ("alex", "maria", "chen"),
    "branch": ("main", "fix/login", "feature/search"), "category": ("books", "music", "tools", "garden"),
    "status": ("open", "done", "pending", "active"), "type": ("basic", "standard", "custom"),
    "tag": ("urgent", "backend", "docs", "v2"), "key": ("alpha", "beta", "gamma", "delta"),
    "command": ("ls -la", "git status", "make test"), "reason": ("It was requested.", "The input was incomplete."),
}  # fmt: skip

_SAME = {
    "town": "city", "place": "location", "mail": "email", "uri": "url", "link": "url", "website": "url", "site": "url",
    "day": "date", "since": "date", "until": "date", "tz": "timezone", "ids": "id", "uuid": "id", "q": "query",
    "search": "query", "question": "query", "paths": "path", "directory": "path", "dir": "path", "filename": "file",
    "filepath": "path", "lang": "language", "locale": "language", "units": "unit", "colour": "color", "tel": "phone",
    "postcode": "zip", "postal": "zip", "body": "content", "summary": "description", "details": "description",
    "explanation": "reason", "repository": "repo", "username": "user", "tags": "tag", "labels": "tag", "label": "tag",
    "subject": "title", "states": "status", "files": "file", "urls": "url", "names": "name", "emails": "email",
    "queries": "query", "cities": "city", "head": "branch", "base": "branch", "prompt": "text", "answer": "text",
    "latitude": "lat", "longitude": "lon", "lng": "lon", "total": "price", "amount": "price", "cost": "price",
    "limit": "count", "quantity": "count", "max": "count", "size": "count", "length": "count", "num": "count",
    "percent": "percentage", "temp": "temperature", "rating": "score", "offset": "page",
}  # fmt: skip

RANGES: dict[str, tuple[int, int]] = {
    "age": (18, 80), "year": (1995, 2026), "month": (1, 12), "day": (1, 28), "hour": (0, 23), "minute": (0, 59),
    "count": (1, 20), "page": (1, 10), "price": (5, 500), "lat": (-60, 60), "lon": (-150, 150), "port": (1024, 9999),
    "percentage": (0, 100), "temperature": (-10, 35), "score": (0, 10), "id": (1, 9999),
    "days": (1, 14), "line": (1, 400),
    "timestamp": (1_704_067_200, 1_767_225_600), "width": (100, 1920), "height": (100, 1080), "timeout": (1, 60),
}  # fmt: skip

USUAL_RANGE = (1, 100)
_NAME_CHARACTERS = 80  # of a name are looked at
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def texts_for(name: str) -> tuple[str, ...]:
    """Texts that suit a property of this name."""
    return _texts_for(name[:_NAME_CHARACTERS])


@lru_cache(maxsize=4096)
def _texts_for(name: str) -> tuple[str, ...]:
    return next((TEXTS[word] for word in _keys(name) if word in TEXTS), WORDS)


def range_for(name: str) -> tuple[int, int]:
    """A range of numbers that suits a property of this name."""
    return _range_for(name[:_NAME_CHARACTERS])


@lru_cache(maxsize=4096)
def _range_for(name: str) -> tuple[int, int]:
    return next((RANGES[word] for word in _keys(name) if word in RANGES), USUAL_RANGE)


def _keys(name: str) -> list[str]:
    found = []
    words = [word for word in _WORD.findall(name) if len(word) < 30]
    if len(words) > 1 and words[-1].lower() in ("name", "names"):
        words[-2:] = [words[-1], words[-2]]
    for word in reversed(words):
        lower = word.lower()
        found += [lower, _SAME.get(lower, lower)]
    return found
