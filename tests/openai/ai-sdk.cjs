// The AI SDK, in the five ways that programs use a chat model; see client_libraries.rs.
//
//     ai-sdk.cjs chat|stream|tools|structured|error BASE_URL MODEL TEXT
const { APICallError, Output, generateText, stepCountIs, streamText, tool } = require("ai");
const { createOpenAICompatible } = require("@ai-sdk/openai-compatible");
const { z } = require("zod");

const weather = tool({
  description: "The weather in a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `sunny in ${city}`,
});

async function chat(options) {
  const { text, finishReason } = await generateText(options);
  return { text, finish: finishReason };
}

async function stream(options) {
  const pieces = [];
  let failure = null;
  const answer = streamText({ ...options, onError: ({ error }) => (failure = error) });
  for await (const piece of answer.textStream) pieces.push(piece);
  if (failure) throw failure;
  return { text: pieces.join(""), pieces: pieces.length, finish: await answer.finishReason };
}

// The SDK calls the tool and asks again by itself.
async function tools(options) {
  const { steps, text } = await generateText({ ...options, tools: { weather }, stopWhen: stepCountIs(3) });
  const [first] = steps;
  return { called: first.toolCalls[0].toolName, finish: first.finishReason, text };
}

async function structured(options) {
  const schema = z.object({ city: z.string(), degrees: z.number().int() });
  return { object: (await generateText({ ...options, output: Output.object({ schema }) })).output };
}

async function main(way, baseURL, model, prompt) {
  const provider = createOpenAICompatible({ name: "kairo", baseURL, apiKey: "not needed", supportsStructuredOutputs: true });
  const ways = { chat, stream, tools, structured, error: chat, "stream-error": stream };
  try {
    return await ways[way]({ model: provider.chatModel(model), prompt, maxRetries: 0 });
  } catch (error) {
    const status = APICallError.isInstance(error) ? error.statusCode : null;
    return { error: error.name ?? error.constructor?.name ?? "error", status, message: error.message ?? JSON.stringify(error) };
  }
}

main(...process.argv.slice(2)).then((answer) => console.log(JSON.stringify(answer)));
