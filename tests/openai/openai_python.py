"""The client of OpenAI for Python, in the five ways that programs use it; see client_libraries.rs.

    openai_python.py chat|stream|tools|structured|error BASE_URL MODEL TEXT
"""

import json
import sys

import openai

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
PLACE = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}


def chat(create, messages):
    choice = create(messages=messages).choices[0]
    return {"text": choice.message.content, "finish": choice.finish_reason}


def stream(create, messages):
    pieces, finish = [], None
    for chunk in create(messages=messages, stream=True):
        for choice in chunk.choices:
            pieces += [choice.delta.content] if choice.delta.content else []
            finish = choice.finish_reason or finish
    return {"text": "".join(pieces), "pieces": len(pieces), "finish": finish}


def tools(create, messages):
    choice = create(messages=messages, tools=[WEATHER]).choices[0]
    call = choice.message.tool_calls[0]
    arguments = json.loads(call.function.arguments)
    messages += [choice.message, {"role": "tool", "tool_call_id": call.id, "content": f"sunny in {arguments['city']}"}]
    after = create(messages=messages, tools=[WEATHER]).choices[0]
    return {"called": call.function.name, "finish": choice.finish_reason, "text": after.message.content}


def structured(create, messages):
    form = {"type": "json_schema", "json_schema": {"name": "place", "strict": True, "schema": PLACE}}
    return {"object": json.loads(create(messages=messages, response_format=form).choices[0].message.content)}


def main(way, base_url, model, text):
    client = openai.OpenAI(base_url=base_url, api_key="not needed", max_retries=0, timeout=120)

    def create(**arguments):
        return client.chat.completions.create(model=model, **arguments)

    ways = {"chat": chat, "stream": stream, "tools": tools, "structured": structured, "error": chat, "stream-error": stream}
    try:
        return ways[way](create, [{"role": "user", "content": text}])
    except openai.APIStatusError as error:
        return {"error": type(error).__name__, "status": error.status_code, "message": error.message}
    except openai.APIError as error:
        return {"error": type(error).__name__, "status": None, "message": error.message}


print(json.dumps(main(*sys.argv[1:])))
