"""What the prompt does: choices and their texts, what is counted, what is told apart."""

from __future__ import annotations

from typing import Any

import pytest

from tests.answers import CHAT, COMPLETIONS, RESPONSES, TOKENIZER, Json, Mock, assemble
from tests.asking import Asker

MOCK = Mock()
IMAGE: Json = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
AUDIO = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
FILE = {"type": "file", "file": {"file_id": "file-1"}}


def user(*parts: Any) -> list[Json]:
    return [{"role": "user", "content": list(parts)}]


class TestChoices:
    def test_each_has_its_own_text(self) -> None:
        reply = MOCK.whole(COMPLETIONS, prompt=["One", "Two", [3, 4]], n=3, max_tokens=9)
        assert [choice["index"] for choice in reply["choices"]] == list(range(9))
        assert len({choice["text"] for choice in reply["choices"]}) == 9
        assert reply["usage"]["prompt_tokens"] == 4
        assert reply["usage"]["completion_tokens"] == 81

    def test_the_first_is_that_of_a_single_one(self) -> None:
        choices = MOCK.whole(CHAT, n=3)["choices"]
        assert choices[0]["message"]["content"] == MOCK.text()
        single = MOCK.whole(COMPLETIONS, prompt="Two")["choices"][0]
        assert MOCK.whole(COMPLETIONS, prompt=["One", "Two"])["choices"][1] == single | {"index": 1}

    def test_they_are_interleaved_in_a_stream(self) -> None:
        chunks = MOCK.chunks(CHAT, n=2, max_tokens=3)
        assert [chunk["choices"][0]["index"] for chunk in chunks[:-1]] == [0, 0, 1, 1, 0, 1, 0, 0, 1, 1]
        assert [part["message"]["role"] for part in assemble(chunks)["choices"]] == ["assistant", "assistant"]

    def test_best_of_gives_n(self) -> None:
        reply = MOCK.whole(COMPLETIONS, n=2, best_of=5)
        assert reply["choices"] == MOCK.whole(COMPLETIONS, n=2)["choices"]

    def test_a_running_count_of_each_choice(self) -> None:
        options = {"include_usage": True, "continuous_usage_stats": True}
        chunks = MOCK.chunks(CHAT, n=2, max_tokens=3, stream_options=options, reasoning_effort="minimal")
        for index in (0, 1):
            counts = [
                chunk["usage"]["completion_tokens"]
                for chunk in chunks
                if chunk["choices"] and chunk["choices"][0]["index"] == index
            ]
            assert counts == [0, 1, 2, 3, 3]


class TestSuffix:
    def test_it_is_read_and_counted_and_not_repeated(self) -> None:
        plain, between = MOCK.whole(COMPLETIONS), MOCK.whole(COMPLETIONS, suffix=" and so on")
        assert between["choices"][0]["text"] != plain["choices"][0]["text"]
        assert not between["choices"][0]["text"].endswith(" and so on")
        assert between["usage"]["prompt_tokens"] == plain["usage"]["prompt_tokens"] + TOKENIZER.count(" and so on")
        assert MOCK.whole(COMPLETIONS, suffix="")["choices"] == plain["choices"]


class TestMedia:
    @pytest.mark.parametrize(
        ("part", "tokens"),
        [(IMAGE, 50), ({"type": "image_url", "image_url": "data:,x"}, 50), (AUDIO, 7), (FILE, 30)],
    )
    def test_each_kind_counts_what_the_setting_says(self, part: Json, tokens: int) -> None:
        mock = Mock(image_tokens=50, audio_tokens=7, file_tokens=30)
        text = {"type": "text", "text": "Hello"}
        usage = mock.whole(CHAT, messages=user(text, part, part))["usage"]
        assert usage["prompt_tokens"] == 1 + 2 * tokens
        assert usage["prompt_tokens_details"]["audio_tokens"] == (14 if part is AUDIO else 0)

    def test_another_image_has_another_answer(self) -> None:
        other = {"type": "image_url", "image_url": {"url": "https://example.com/b.png"}}
        texts = [MOCK.text(messages=user(*parts)) for parts in ([IMAGE], [other], [IMAGE, other], [IMAGE])]
        assert len(set(texts)) == 3
        assert texts[0] == texts[3]

    def test_an_image_in_another_message_has_another_answer_in_every_dialect(self) -> None:
        def turns(place: int, image: Json, kind: str) -> list[Json]:
            said = [[{"type": kind, "text": text}] for text in ("One", "Two")]
            return [{"role": "user", "content": [*part, image][: 1 + (k == place)]} for k, part in enumerate(said)]

        native = {"type": "input_image", "image_url": IMAGE["image_url"]["url"]}
        source = {"type": "image", "source": {"type": "url", "url": IMAGE["image_url"]["url"]}}
        texts = []
        for place in (0, 1):
            chat = MOCK.text(messages=turns(place, IMAGE, "text"))
            reply = MOCK.whole(RESPONSES, input=turns(place, native, "input_text"))
            message = Asker().post("/v1/messages", max_tokens=64, messages=turns(place, source, "text")).json
            assert reply["output"][0]["content"][0]["text"] == message["content"][0]["text"] == chat
            texts.append(chat)
        assert texts[0] != texts[1]

    @pytest.mark.parametrize(
        "part",
        [
            {"type": "image_url"},
            {"type": "image_url", "image_url": {}},
            {"type": "image_url", "image_url": {"url": 5}},
            {"type": "input_audio", "input_audio": {"format": "wav"}},
            {"type": "file", "file": {"filename": "a.pdf"}},
        ],
    )
    def test_a_part_without_its_source_is_refused(self, part: Json) -> None:
        assert MOCK.error(CHAT, messages=user(part))["param"] == "messages[0].content[0]"

    def test_they_count_against_the_context(self) -> None:
        mock = Mock(max_model_len=60, image_tokens=50)
        error = mock.error(CHAT, messages=user(IMAGE), max_tokens=20)
        assert error["code"] == "context_length_exceeded"


class TestPrediction:
    def details(self, prediction: Any) -> tuple[int, int]:
        usage = MOCK.whole(CHAT, prediction={"type": "content", "content": prediction})["usage"]
        details = usage["completion_tokens_details"]
        return details["accepted_prediction_tokens"], details["rejected_prediction_tokens"]

    def test_what_was_foreseen_is_accepted(self) -> None:
        text = MOCK.text()
        pieces = TOKENIZER.pieces(text)
        assert self.details(text) == (len(pieces), 0)
        assert self.details([{"type": "text", "text": text}]) == (len(pieces), 0)
        assert self.details("".join(pieces[:4])) == (4, 0)
        other = "; 12"
        assert self.details("".join(pieces[:4]) + other) == (4, TOKENIZER.count(other))
        assert self.details("Nothing of it.") == (0, 4)

    def test_cached_tokens_are_never_invented(self) -> None:
        assert MOCK.whole(CHAT)["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
