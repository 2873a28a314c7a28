// Vercel's AI SDK with its OpenAI provider: chat and Responses.
//
// What it needed that the API reference does not say:
//
// - `openai(model)` speaks Responses, `openai.chat(model)` chat.
// - It validates every event of a stream by schema; one that does not fit ends the stream with an error part.
// - It retries what it thinks can be retried twice, unless `maxRetries` is 0.
// - Structured output is `json_schema` with strict on, unless the provider's options say otherwise.

import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { APICallError, embedMany, generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { answer, BASE, check, checkPerson, checkWeather, KEY, main, MODEL, QUESTION, TOKENS } from "./harness.mjs";

const openai = createOpenAI({ baseURL: BASE, apiKey: KEY });
const wrongKey = createOpenAI({ baseURL: BASE, apiKey: "wrong" });
const Person = z.object({ name: z.string(), age: z.number().int(), tags: z.array(z.string()) });
const inputSchema = z.object({ city: z.string(), unit: z.enum(["celsius", "fahrenheit"]) });

function checks(row, over) {
  const asked = { model: over(openai, MODEL), prompt: QUESTION, maxRetries: 0 };

  check(row, "plain", async () => {
    const result = await generateText(asked);
    assert.equal(result.text, await answer(QUESTION));
    assert.equal(result.usage.outputTokens, TOKENS);
    assert.equal(result.finishReason, "stop");
  });

  check(row, "stream", async () => {
    const failures = [];
    const result = streamText({ ...asked, onError: ({ error }) => failures.push(error) });
    let text = "";
    for await (const delta of result.textStream) text += delta;
    assert.deepEqual(failures, []);
    assert.equal(text, await answer(QUESTION));
    assert.equal((await result.usage).outputTokens, TOKENS);
  });

  check(row, "tools", async () => {
    for (const run of [generateText, streamText]) {
      const calls = [];
      const execute = async (given) => {
        calls.push(given);
        return "sunny";
      };
      const tools = { get_weather: tool({ description: "", inputSchema, execute }) };
      const result = await run({ ...asked, tools, stopWhen: stepCountIs(5) });
      assert.ok(await result.text);
      assert.equal((await result.steps).length, 2);
      assert.equal(calls.length, 1);
      checkWeather(calls[0]);
    }
  });

  check(row, "structured", async () => {
    const result = await generateText({ ...asked, output: Output.object({ schema: Person }) });
    checkPerson(result.output);
  });

  check(row, "errors", async () => {
    for (const [status, model] of [
      [401, over(wrongKey, MODEL)],
      [404, over(openai, "no-such-model")],
    ]) {
      await assert.rejects(
        generateText({ ...asked, model }),
        (error) => APICallError.isInstance(error) && error.statusCode === status,
      );
    }
  });
}

checks("ai (npm): chat", (provider, name) => provider.chat(name));
checks("ai (npm): Responses", (provider, name) => provider.responses(name));

check("ai (npm): chat", "embeddings", async () => {
  const { embeddings } = await embedMany({ model: openai.embedding(MODEL), values: ["a", "b"], maxRetries: 0 });
  assert.deepEqual(embeddings.map((vector) => vector.length), [1536, 1536]);
});

await main("ai");
