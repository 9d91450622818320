"""A client of gRPC that knows nothing of Kairo but what reflection tells it.

Each line of standard input is a request as JSON, answered by a line of JSON on standard output. Messages are in proto3's
JSON form, with the names of the proto files. `stream` answers with every message up to one that holds `until`.
"""

import json
import sys

import grpc
from google.protobuf import descriptor_pool, json_format, message_factory
from google.rpc import error_details_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_status import rpc_status

DETAILS = [error_details_pb2.ErrorInfo, error_details_pb2.BadRequest, error_details_pb2.RetryInfo]


class Kairo:
    def __init__(self, address, key):
        self.channel = grpc.insecure_channel(address)
        self.metadata = [("authorization", f"Bearer {key}")] if key else []
        self.reflection = ProtoReflectionDescriptorDatabase(self.channel)
        self.pool = descriptor_pool.DescriptorPool(self.reflection)

    def services(self):
        return sorted(self.reflection.get_services())

    def rpcs(self, service):
        return sorted(self.pool.FindServiceByName(service).methods_by_name)

    def _rpc(self, name, message):
        service, rpc = name.split("/")
        method = self.pool.FindServiceByName(service).methods_by_name[rpc]
        asked = message_factory.GetMessageClass(method.input_type)
        answered = message_factory.GetMessageClass(method.output_type)
        open_rpc = self.channel.unary_stream if method.server_streaming else self.channel.unary_unary
        call = open_rpc(
            f"/{name}", request_serializer=asked.SerializeToString, response_deserializer=answered.FromString
        )
        return call, json_format.ParseDict(message, asked())

    def call(self, name, message):
        call, message = self._rpc(name, message)
        return shown(call(message, metadata=self.metadata, timeout=60))

    def stream(self, name, message, until):
        call, message = self._rpc(name, message)
        told = []
        answers = call(message, metadata=self.metadata, timeout=60)
        for answer in answers:
            told.append(shown(answer))
            if until in json.dumps(told[-1]):
                answers.cancel()
                break
        return told


def shown(message):
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def refused(error):
    details = []
    status = rpc_status.from_call(error)
    for detail in status.details if status else []:
        for kind in DETAILS:
            if detail.Is(kind.DESCRIPTOR):
                message = kind()
                detail.Unpack(message)
                details.append({"kind": kind.DESCRIPTOR.name, **shown(message)})
    return {"code": error.code().name, "message": error.details(), "details": details}


clients = {}
for line in sys.stdin:
    request = json.loads(line)
    who = (request["address"], request.get("key"))
    if who not in clients:
        clients[who] = Kairo(*who)
    try:
        answer = {"ok": getattr(clients[who], request["do"])(*request.get("arguments", []))}
    except grpc.RpcError as error:
        answer = {"error": refused(error)}
    print(json.dumps(answer), flush=True)
