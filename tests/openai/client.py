"""One request with the client of OpenAI: read from standard input as JSON, answered on standard output as JSON.

Of a stream every chunk is a line as it comes, and the last line is the answer.
"""

import json
import sys

import openai


def asked(client, do, arguments):
    if do == "models":
        return {"models": [model.id for model in client.models.list()]}
    if do == "model":
        return client.models.retrieve(**arguments).model_dump()
    if do == "chat":
        answer = client.chat.completions.with_raw_response.create(**arguments)
        return {**answer.parse().model_dump(), "thread": answer.headers["kairo-thread"]}
    if do == "responses":
        return client.responses.create(**arguments).model_dump()
    if do == "embeddings":
        return client.embeddings.create(**arguments).model_dump()
    content, finish, usage, ids, roles = [], None, None, set(), []
    for chunk in client.chat.completions.create(stream=True, **arguments):
        ids.add(chunk.id)
        usage = chunk.usage.model_dump() if chunk.usage else usage
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            if choice.delta.role:
                roles.append(choice.delta.role)
            if choice.delta.content:
                content.append(choice.delta.content)
                print(json.dumps({"delta": choice.delta.content}), flush=True)
    return {"content": content, "finish": finish, "usage": usage, "ids": sorted(ids), "roles": roles}


request = json.load(sys.stdin)
client = openai.OpenAI(base_url=request["base_url"], api_key="not needed", max_retries=0, timeout=120)
try:
    answer = asked(client, request["do"], request.get("arguments", {}))
except openai.APIError as error:
    status = getattr(error, "status_code", None)
    answer = {"error": error.message, "status": status, "code": error.code, "param": error.param, "type": error.type}
print(json.dumps(answer), flush=True)
