"""LangChain, in the five ways that programs use a chat model; see client_libraries.rs.

    langchain_chat.py chat|stream|tools|structured|error BASE_URL MODEL TEXT
"""

import json
import sys

import openai
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

PLACE = {
    "title": "place",
    "description": "A place.",
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def finish(message):
    return message.response_metadata.get("finish_reason")


def chat(model, text):
    answer = model.invoke(text)
    return {"text": answer.content, "finish": finish(answer)}


def stream(model, text):
    pieces, ending = [], None
    for chunk in model.stream(text):
        pieces += [chunk.content] if chunk.content else []
        ending = finish(chunk) or ending
    return {"text": "".join(pieces), "pieces": len(pieces), "finish": ending}


def tools(model, text):
    bound = model.bind_tools([weather])
    asked = bound.invoke([HumanMessage(text)])
    call = asked.tool_calls[0]
    result = ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"])
    answer = bound.invoke([HumanMessage(text), asked, result])
    return {"called": call["name"], "finish": finish(asked), "text": answer.content}


def structured(model, text):
    return {"object": model.with_structured_output(PLACE, method="json_schema").invoke(text)}


def main(way, base_url, name, text):
    model = ChatOpenAI(base_url=base_url, api_key="not needed", model=name, max_retries=0, timeout=120)
    ways = {"chat": chat, "stream": stream, "tools": tools, "structured": structured, "error": chat, "stream-error": stream}
    try:
        return ways[way](model, text)
    except openai.APIStatusError as error:
        return {"error": type(error).__name__, "status": error.status_code, "message": error.message}
    except openai.APIError as error:
        return {"error": type(error).__name__, "status": None, "message": error.message}


print(json.dumps(main(*sys.argv[1:])))
