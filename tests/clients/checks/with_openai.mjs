// The official npm package: chat and Responses.
//
// What it needed that the API reference does not say:
//
// - Like the Python one it asks for embeddings as base64, and decodes them itself.
// - `chat.completions.stream` counts on `delta.tool_calls[].index`, and on the name in the first delta of a call.
// - `runTools` goes on until a reply calls no tool.

import assert from "node:assert/strict";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import { answer, BASE, check, checkPerson, checkWeather, KEY, main, MODEL, QUESTION, TOKENS } from "./harness.mjs";

const client = new OpenAI({ baseURL: BASE, apiKey: KEY, maxRetries: 0 });
const wrongKey = new OpenAI({ baseURL: BASE, apiKey: "wrong", maxRetries: 0 });
const messages = [{ role: "user", content: QUESTION }];
const Person = z.object({ name: z.string(), age: z.number().int(), tags: z.array(z.string()) });
const parameters = {
  type: "object",
  properties: { city: { type: "string" }, unit: { enum: ["celsius", "fahrenheit"] } },
  required: ["city", "unit"],
  additionalProperties: false,
};

async function expectErrors(limit, ask) {
  await assert.rejects(ask(wrongKey, { model: MODEL }), (e) => e.status === 401 && e.code === "invalid_api_key");
  await assert.rejects(ask(client, { model: "no-such-model" }), (e) => e instanceof OpenAI.NotFoundError);
  await assert.rejects(
    ask(client, { model: MODEL, [limit]: -1 }),
    (e) => e instanceof OpenAI.BadRequestError && e.param === limit && Boolean(e.requestID),
  );
}

const chat = "openai (npm): chat";

check(chat, "plain", async () => {
  const reply = await client.chat.completions.create({ model: MODEL, messages });
  assert.equal(reply.choices[0].message.content, await answer(QUESTION));
  assert.equal(reply.usage.completion_tokens, TOKENS);
});

check(chat, "stream", async () => {
  const stream = client.chat.completions.stream({ model: MODEL, messages, stream_options: { include_usage: true } });
  let text = "";
  stream.on("content", (delta) => (text += delta));
  const final = await stream.finalChatCompletion();
  assert.equal(text, await answer(QUESTION));
  assert.equal(final.usage.completion_tokens, TOKENS);
});

check(chat, "tools", async () => {
  const calls = [];
  const weather = (given) => {
    calls.push(given);
    return "sunny";
  };
  const tool = { name: "get_weather", description: "", parameters, parse: JSON.parse, function: weather };
  for (const stream of [false, true]) {
    const runner = client.chat.completions.runTools({
      model: MODEL,
      messages,
      stream,
      tools: [{ type: "function", function: tool }],
    });
    assert.ok(await runner.finalContent());
  }
  assert.equal(calls.length, 2);
  assert.deepEqual(calls[0], calls[1]);
  checkWeather(calls[0]);
});

check(chat, "structured", async () => {
  const response_format = zodResponseFormat(Person, "person");
  const reply = await client.chat.completions.parse({ model: MODEL, messages, response_format });
  checkPerson(reply.choices[0].message.parsed);
});

check(chat, "embeddings", async () => {
  const packed = await client.embeddings.create({ model: MODEL, input: ["a", "b"] });
  const floats = await client.embeddings.create({ model: MODEL, input: ["a", "b"], encoding_format: "float" });
  assert.deepEqual(packed.data.map((row) => row.embedding), floats.data.map((row) => row.embedding));
});

check(chat, "errors", () =>
  expectErrors("max_tokens", (sdk, more) => sdk.chat.completions.create({ messages, ...more })),
);

const responses = "openai (npm): Responses";

check(responses, "plain", async () => {
  const reply = await client.responses.create({ model: MODEL, input: QUESTION });
  assert.equal(reply.output_text, await answer(QUESTION));
  assert.equal(reply.usage.output_tokens, TOKENS);
});

check(responses, "stream", async () => {
  const stream = client.responses.stream({ model: MODEL, input: QUESTION });
  let text = "";
  for await (const event of stream) if (event.type === "response.output_text.delta") text += event.delta;
  const final = await stream.finalResponse();
  assert.equal(text, await answer(QUESTION));
  assert.equal(final.output_text, text);
});

check(responses, "tools", async () => {
  const tools = [{ type: "function", name: "get_weather", parameters, strict: true }];
  const first = await client.responses.create({ model: MODEL, input: QUESTION, tools, tool_choice: "required" });
  const [call] = first.output;
  checkWeather(JSON.parse(call.arguments));
  const result = { type: "function_call_output", call_id: call.call_id, output: "sunny" };
  const final = await client.responses.create({ model: MODEL, previous_response_id: first.id, input: [result], tools });
  assert.ok(final.output_text);
});

check(responses, "structured", async () => {
  const text = { format: zodTextFormat(Person, "person") };
  const reply = await client.responses.parse({ model: MODEL, input: QUESTION, text });
  checkPerson(reply.output_parsed);
});

check(responses, "errors", () =>
  expectErrors("max_output_tokens", (sdk, more) => sdk.responses.create({ input: QUESTION, ...more })),
);

await main("openai");
