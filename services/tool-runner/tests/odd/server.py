"""An MCP server over stdio that writes what its table says, byte for byte. argv: the table, and the file of effects.

The table is JSON: `start` is written at the beginning, `pages` are the answers to the requests of tools/list (the last one
again and again), `calls` has the answer of each tool, written after the call's name was added to the file of effects. In all
of them `{id}` stands for the id of the request. Characters are bytes. It exits when it gets a message with the method that
`dies_of` names."""

import json
import os
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    table = json.load(file)
effects = sys.argv[2]
out = sys.stdout.buffer
asked = 0
# An answer that begins so is written when the call is canceled.
WHEN_TOLD = "when told "
waiting = None


def write(text, id=None):
    out.write(text.replace("{id}", json.dumps(id)).encode("latin-1"))
    out.flush()


def answer(id, result):
    write(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}) + "\n")


write(table.get("start", ""))
for line in sys.stdin.buffer:
    message = json.loads(line)
    id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if method == table.get("dies_of"):
        os._exit(3)
    if method == "initialize":
        answer(id, table.get("initialize") or {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "odd", "version": "1"},
        })
    elif method == "tools/list":
        page = table["pages"][min(asked, len(table["pages"]) - 1)]
        asked += 1
        write(page, id)
    elif method == "tools/call":
        with open(effects, "a", encoding="utf-8") as file:
            file.write(params["name"] + "\n")
        what = table["calls"][params["name"]]
        if what == "exit":
            sys.stderr.write("the disk is full\n")
            sys.stderr.flush()
            os._exit(3)
        if what.startswith(WHEN_TOLD):
            waiting = (what.removeprefix(WHEN_TOLD), id)
        else:
            write(what, id)
    elif method == "notifications/cancelled" and waiting:
        write(*waiting)
    elif id is not None:
        write('{"jsonrpc":"2.0","id":{id},"error":{"code":-32601,"message":"no such method"}}\n', id)
