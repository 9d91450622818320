// The client of OpenAI for Node, in the five ways that programs use it; see client_libraries.rs.
//
//     openai-node.cjs chat|stream|tools|structured|error BASE_URL MODEL TEXT
const { OpenAI, APIError } = require("openai");

const WEATHER = {
  type: "function",
  function: {
    name: "weather",
    description: "The weather in a city.",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};
const PLACE = {
  type: "object",
  properties: { city: { type: "string" }, degrees: { type: "integer" } },
  required: ["city", "degrees"],
  additionalProperties: false,
};

async function chat(create, messages) {
  const [choice] = (await create({ messages })).choices;
  return { text: choice.message.content, finish: choice.finish_reason };
}

async function stream(create, messages) {
  const pieces = [];
  let finish = null;
  for await (const chunk of await create({ messages, stream: true })) {
    for (const choice of chunk.choices) {
      if (choice.delta.content) pieces.push(choice.delta.content);
      finish = choice.finish_reason ?? finish;
    }
  }
  return { text: pieces.join(""), pieces: pieces.length, finish };
}

async function tools(create, messages) {
  const [choice] = (await create({ messages, tools: [WEATHER] })).choices;
  const [call] = choice.message.tool_calls;
  const { city } = JSON.parse(call.function.arguments);
  const result = { role: "tool", tool_call_id: call.id, content: `sunny in ${city}` };
  const [after] = (await create({ messages: [...messages, choice.message, result], tools: [WEATHER] })).choices;
  return { called: call.function.name, finish: choice.finish_reason, text: after.message.content };
}

async function structured(create, messages) {
  const form = { type: "json_schema", json_schema: { name: "place", strict: true, schema: PLACE } };
  const [choice] = (await create({ messages, response_format: form })).choices;
  return { object: JSON.parse(choice.message.content) };
}

async function main(way, baseURL, model, text) {
  const client = new OpenAI({ baseURL, apiKey: "not needed", maxRetries: 0, timeout: 120_000 });
  const create = (request) => client.chat.completions.create({ model, ...request });
  const ways = { chat, stream, tools, structured, error: chat, "stream-error": stream };
  try {
    return await ways[way](create, [{ role: "user", content: text }]);
  } catch (error) {
    if (!(error instanceof APIError)) throw error;
    return { error: error.constructor.name, status: error.status ?? null, message: error.message };
  }
}

main(...process.argv.slice(2)).then((answer) => console.log(JSON.stringify(answer)));
