use super::*;

fn shop() -> Value {
    json!({
        "openapi": "3.0.3",
        "servers": [{"url": "https://{region}.example.com/api/", "variables": {"region": {"default": "eu"}}}],
        "paths": {
            "/orders/{id}": {
                "parameters": [{"$ref": "#/components/parameters/Id"}],
                "get": {
                    "operationId": "getOrder",
                    "summary": "One order",
                    "description": "With its lines.",
                    "parameters": [
                        {"name": "expand", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                        {"name": "id", "in": "query", "schema": {"type": "string"}, "description": "of the request"},
                        {"name": "X-Api-Key", "in": "header", "required": true, "schema": {"type": "string"}},
                        {"name": "Accept", "in": "header", "schema": {"type": "string"}},
                        {"name": "session", "in": "cookie", "schema": {"type": "string"}},
                    ],
                },
                "put": {
                    "operationId": "putOrder",
                    "requestBody": {"$ref": "#/components/requestBodies/Order"},
                    "servers": [{"url": "http://127.0.0.1:81"}],
                },
                "options": {"operationId": "about"},
            },
            "/orders": {
                "post": {"operationId": "upload", "requestBody": {"required": true, "content": {"text/csv": {}}}},
                "delete": {"summary": "without an id"},
                "get": {"operationId": "search", "parameters": [
                    {"name": "filter", "in": "query", "required": true, "style": "deepObject", "schema": {"type": "object"}},
                ]},
            },
            "/carts/{cart}": {"get": {"operationId": "cart"}},
        },
        "components": {
            "parameters": {"Id": {"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}},
            "requestBodies": {"Order": {"required": true, "content": {
                "application/json; charset=utf-8": {"schema": {"$ref": "#/components/schemas/Order"}},
            }}},
            "schemas": {"Order": {"type": "object", "properties": {"note": {"type": "string"}}}},
        },
    })
}

fn find_operations(
    document: &Value,
    base_url: Option<&str>,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Result<DocumentContents, String> {
    let given_headers = BTreeSet::from(["x-api-key".to_owned()]);
    read_operations(document, &OperationSelection { base_url, is_wanted, given_headers: &given_headers })
}

fn prepared(operation: &DocumentedOperation, arguments: Value) -> (String, Option<Value>) {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    let prepared = operation.operation.prepare(arguments).unwrap();
    (prepared.url.to_string(), prepared.body)
}

#[test]
fn operations_become_tools() {
    let found = find_operations(&shop(), None, &|_| true).unwrap();
    let [get, put] = &found.operations[..] else { panic!("{found:#?}") };
    assert_eq!((get.id.as_str(), get.description.as_str()), ("getOrder", "One order\nWith its lines."));
    assert_eq!(
        get.schema,
        json!({
            "type": "object",
            "required": ["id"],
            "additionalProperties": false,
            "properties": {
                "id": {"type": "integer"},
                "query_id": {"type": "string", "description": "of the request"},
                "expand": {"type": "array", "items": {"type": "string"}},
            },
        })
    );
    let asked = json!({"id": 7, "query_id": "a b", "expand": ["x", "y"]});
    let url = "https://eu.example.com/api/orders/7?expand=x&expand=y&id=a+b".to_owned();
    assert_eq!(prepared(get, asked), (url, None));
    assert_eq!(put.schema["required"], json!(["id", "body"]));
    assert_eq!(put.schema["properties"]["body"]["properties"]["note"]["type"], "string");
    let body = json!({"note": "n"});
    let put = prepared(put, json!({"id": 7, "body": body}));
    assert_eq!(put, ("http://127.0.0.1:81/orders/7".to_owned(), Some(body)));
}

#[test]
fn what_is_not_offered_is_named_with_the_reason() {
    let found = find_operations(&shop(), Some("https://h"), &|_| true).unwrap();
    let reason = |what: &str| {
        let left = found.left_out.iter().find(|left| left.what == what);
        left.map_or_else(|| panic!("{what} in {:#?}", found.left_out), |left| left.reason.as_str())
    };
    assert!(reason("upload").contains("application/json"));
    assert!(reason("search").contains("filter"));
    assert!(reason("about").contains("OPTIONS"));
    assert!(reason("cart").contains("cart"));
    assert!(reason("DELETE /orders").contains("operationId"));
    assert!(reason("getOrder, its parameter session").contains("cookie"));
    assert_eq!((found.left_out.len(), found.operations.len()), (6, 2));
    assert_eq!(found.operations[0].operation.template.host(), "h:443");
}

#[test]
fn only_what_is_wanted_is_read() {
    let found = find_operations(&shop(), None, &|id| id == "putOrder").unwrap();
    assert_eq!(found.operations.len(), 1);
    assert_eq!(found.left_out.len(), 1, "what has no id is wanted or not, nobody knows: {:?}", found.left_out);
}

#[test]
fn other_documents_and_relative_servers_are_told() {
    assert!(find_operations(&json!({"swagger": "2.0"}), None, &|_| true).unwrap_err().starts_with("document: "));
    let relative =
        json!({"openapi": "3.1.0", "servers": [{"url": "/api"}], "paths": {"/a": {"get": {"operationId": "a"}}}});
    assert!(find_operations(&relative, None, &|_| true).unwrap().left_out[0].reason.contains("base_url"));
    assert_eq!(find_operations(&relative, Some("https://h/b"), &|_| true).unwrap().operations.len(), 1);
}
