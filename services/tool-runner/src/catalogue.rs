//! The tools that are on offer, checked and compiled: one immutable value with a version.
//!
//! A model request depends on the tools offered, so the version is recorded with each decision.
//! Two replicas with the same tools compute the same version.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::Validator;
use kairo_core::schema::measure;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::canonical_json::canonical_json;
use crate::tool::{ToolError, ToolSpec};
use crate::tool_name;

/// Most violations of a schema reported at once; more do not help whoever must fix them.
const MAX_VIOLATIONS: usize = 20;
/// Longest text of one violation, in characters: it quotes the offending value.
const MAX_VIOLATION_CHARS: usize = 300;

/// Places where a schema may refer to what contains them: with one, what checking takes grows with the arguments, with
/// two it may double with each level of theirs.
const MAX_RETURNS: usize = 1;

/// The limits of a catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueLimits {
    /// Most tools in total.
    pub max_tools: usize,
    /// Most bytes of one tool's JSON Schema and description together.
    pub max_schema_bytes: usize,
}

/// A tool that was left out, and why. The others are not affected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    pub name: String,
    pub reason: String,
}

#[derive(Debug)]
struct CatalogueEntry {
    spec: ToolSpec,
    validator: Validator,
}

/// An immutable set of tools with compiled argument schemas.
#[derive(Debug)]
pub struct Catalogue {
    version: Uuid,
    entries: BTreeMap<String, CatalogueEntry>,
}

impl Catalogue {
    /// Checks and compiles `specs`. Of two with the same name the first wins; what is unusable
    /// is left out and named in the rejections.
    pub fn build(specs: impl IntoIterator<Item = ToolSpec>, limits: CatalogueLimits) -> (Self, Vec<Rejection>) {
        let mut entries = BTreeMap::new();
        let mut wire_names = BTreeSet::new();
        let mut rejections = Vec::new();
        for spec in specs {
            let admitted = if entries.len() >= limits.max_tools {
                Err(format!("the catalogue already holds its {} tools; raise max_tools", limits.max_tools))
            } else if wire_names.contains(&tool_name::wire_name(&spec.name)) {
                Err("another tool has this name".to_owned())
            } else {
                compile(&spec, limits)
            };
            match admitted {
                Ok(validator) => {
                    wire_names.insert(tool_name::wire_name(&spec.name));
                    entries.insert(spec.name.clone(), CatalogueEntry { spec, validator });
                }
                Err(reason) => rejections.push(Rejection { name: spec.name, reason }),
            }
        }
        let version = digest(entries.values().map(|entry| &entry.spec));
        (Self { version, entries }, rejections)
    }

    /// UUIDv5 of all that the specs say: equal catalogues have equal versions.
    pub fn version(&self) -> Uuid {
        self.version
    }

    /// The specs in the order of their names.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.entries.values().map(|entry| &entry.spec)
    }

    pub fn get(&self, name: &str) -> Option<&ToolSpec> {
        self.entries.get(name).map(|entry| &entry.spec)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Checks the arguments of a call.
    ///
    /// # Errors
    /// `not_found` for an unknown tool, `invalid_arguments` naming every violation and where in
    /// the arguments it is.
    pub fn validate(&self, tool: &str, args: &Value) -> Result<(), ToolError> {
        let entry = self.entries.get(tool).ok_or_else(|| {
            ToolError::not_found(format!("there is no tool named {tool:?}; choose one of the catalogue"))
        })?;
        let violations: Vec<String> = entry
            .validator
            .iter_errors(args)
            .take(MAX_VIOLATIONS)
            .map(|error| {
                let path = error.instance_path().to_string();
                let place = if path.is_empty() { "/" } else { path.as_str() };
                let text: String = error.to_string().chars().take(MAX_VIOLATION_CHARS).collect();
                format!("{place}: {text}")
            })
            .collect();
        if violations.is_empty() { Ok(()) } else { Err(ToolError::invalid_arguments(violations.join("; "))) }
    }
}

fn compile(spec: &ToolSpec, limits: CatalogueLimits) -> Result<Validator, String> {
    if !tool_name::is_valid(&spec.name) {
        return Err(format!(
            "the name must be [a-z0-9_-]+(.[A-Za-z0-9_-]+)* and at most {} characters with \".\" written \"__\"",
            tool_name::MAX_WIRE_NAME
        ));
    }
    let size = spec.schema.to_string().len() + spec.description.len();
    if size > limits.max_schema_bytes {
        return Err(format!(
            "its schema and description take {size} bytes of at most {}; raise max_schema_bytes",
            limits.max_schema_bytes
        ));
    }
    // Models answer with an object of arguments, nothing else.
    if spec.schema.get("type") != Some(&Value::from("object")) {
        return Err("its schema must have \"type\": \"object\"".to_owned());
    }
    let extent = measure(&spec.schema).map_err(|problem| format!("its schema is not used: {problem}"))?;
    if extent.returns > MAX_RETURNS {
        return Err(format!(
            "its schema is not used: it refers to itself in {} places of at most {MAX_RETURNS}",
            extent.returns
        ));
    }
    // Offline: a schema must not make the runner fetch what somebody else wrote.
    jsonschema::options().offline().build(&spec.schema).map_err(|error| format!("its schema is unusable: {error}"))
}

fn digest<'a>(specs: impl Iterator<Item = &'a ToolSpec>) -> Uuid {
    let tools: Vec<Value> = specs
        .map(|spec| {
            let mut tool = json!({
                "name": spec.name,
                "description": spec.description,
                "schema": spec.schema,
                "idempotent": spec.idempotent,
                "timeout_ms": u64::try_from(spec.timeout.as_millis()).unwrap_or(u64::MAX),
                "executor": spec.executor.as_str(),
                "needs_approval": spec.needs_approval,
            });
            // Where there are none the version is what builds say that do not know of them.
            if let (false, Value::Object(tool)) = (spec.needs_approval_with.is_empty(), &mut tool) {
                let with = spec.needs_approval_with.iter().map(|needing| json!([needing.name, needing.value]));
                tool.insert("needs_approval_with".to_owned(), with.collect());
            }
            if let (true, Value::Object(tool)) = (spec.acts_outside, &mut tool) {
                tool.insert("acts_outside".to_owned(), Value::Bool(true));
            }
            tool
        })
        .collect();
    let canonical = canonical_json(&Value::from(tools));
    Uuid::new_v5(&Uuid::NAMESPACE_OID, canonical.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tool::{Executor, ToolErrorKind};

    const LIMITS: CatalogueLimits = CatalogueLimits { max_tools: 3, max_schema_bytes: 1000 };

    fn spec(name: &str, schema: Value) -> ToolSpec {
        ToolSpec {
            name: name.to_owned(),
            description: "does it".to_owned(),
            schema,
            idempotent: true,
            timeout: Duration::from_secs(1),
            executor: Executor::ToolRunner,
            needs_approval: false,
            needs_approval_with: Vec::new(),
            acts_outside: false,
            definition: None,
        }
    }

    fn counter(name: &str) -> ToolSpec {
        spec(
            name,
            json!({"type": "object", "required": ["n"], "additionalProperties": false,
                   "properties": {"n": {"type": "integer", "minimum": 1}}}),
        )
    }

    #[test]
    fn version_depends_on_what_is_said_and_not_on_order() {
        let version = |specs: Vec<ToolSpec>| Catalogue::build(specs, LIMITS).0.version();
        let both = version(vec![counter("a"), counter("b")]);
        assert_eq!(both, version(vec![counter("b"), counter("a")]));
        assert_ne!(both, version(vec![counter("a")]));
        let mut changed = counter("b");
        changed.description = "does it better".to_owned();
        assert_ne!(both, version(vec![counter("a"), changed]));
    }

    #[test]
    fn version_ignores_the_order_of_schema_keys() {
        let one: Value = serde_json::from_str(r#"{"type":"object","title":"t"}"#).unwrap();
        let two: Value = serde_json::from_str(r#"{"title":"t","type":"object"}"#).unwrap();
        let version = |schema| Catalogue::build([spec("a", schema)], LIMITS).0.version();
        assert_eq!(version(one), version(two));
    }

    #[test]
    fn every_violation_is_named_with_its_place() {
        let (catalogue, rejections) = Catalogue::build([counter("a")], LIMITS);
        assert_eq!(rejections, []);
        assert_eq!(catalogue.validate("a", &json!({"n": 1})), Ok(()));
        let error = catalogue.validate("a", &json!({"n": 0, "x": 1})).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::InvalidArguments);
        assert!(error.message.contains("/n: "), "{error}");
        assert!(error.message.contains("'x'"), "{error}");
        let error = catalogue.validate("b", &json!({})).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::NotFound);
    }

    #[test]
    fn an_unusable_tool_is_left_out_and_the_others_stay() {
        let remote = json!({"type": "object", "$ref": "https://example.com/schema.json"});
        let huge = json!({"type": "object", "description": "x".repeat(1000)});
        let (catalogue, rejections) = Catalogue::build(
            [
                counter("good"),
                counter("Bad name"),
                spec("remote", remote),
                spec("broken", json!({"type": "object", "properties": 3})),
                spec("huge", huge),
                spec("text", json!({"type": "string"})),
                counter("good"),
            ],
            LIMITS,
        );
        let names: Vec<_> = catalogue.specs().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["good"]);
        let rejected: Vec<_> = rejections.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(rejected, ["Bad name", "remote", "broken", "huge", "text", "good"]);
    }

    #[test]
    fn a_schema_that_would_take_too_long_is_left_out_with_the_reason() {
        let limits = CatalogueLimits { max_tools: 10, max_schema_bytes: 64 * 1024 };
        let doubling = |count: usize| {
            let mut defs: serde_json::Map<String, Value> = (0..count)
                .map(|at| {
                    let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
                    (format!("d{at}"), json!({"allOf": [next, next]}))
                })
                .collect();
            defs.insert(format!("d{count}"), json!({"type": "object"}));
            json!({"type": "object", "$defs": defs, "$ref": "#/$defs/d0"})
        };
        let tree = json!({
            "type": "object",
            "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}},
        });
        let twice = json!({"type": "object", "properties": {"x": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}});
        let deep = (0..100).fold(json!({}), |inner, _| json!({"not": inner}));
        let specs = [
            spec("small", doubling(3)),
            spec("doubling", doubling(15)),
            spec("tree", tree),
            spec("twice", twice),
            spec("deep", json!({"type": "object", "properties": {"x": deep}})),
        ];
        let (catalogue, rejections) = Catalogue::build(specs, limits);
        let names: Vec<_> = catalogue.specs().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["small", "tree"]);
        let told: Vec<_> = rejections.iter().map(|r| format!("{}: {}", r.name, r.reason)).collect();
        for (told, expected) in told.iter().zip(["more than 20000 values", "itself in 2 places", "deeper than 64"]) {
            assert!(told.contains(expected), "{told}");
        }
        // A tree is checked as deep as it goes.
        let branch = |inner: Value| json!({"name": "a", "children": [inner]});
        let nested = (0..50).fold(json!({"name": 1}), |inner, _| branch(inner));
        let error = catalogue.validate("tree", &nested).unwrap_err();
        assert!(error.message.contains("/children/0/name"), "{error}");
    }

    #[test]
    fn names_that_collide_on_the_wire_are_refused() {
        let (catalogue, rejections) = Catalogue::build([counter("a.b"), counter("a__b")], LIMITS);
        assert_eq!(catalogue.len(), 1);
        assert_eq!(rejections.len(), 1);
    }

    #[test]
    fn the_number_of_tools_is_limited() {
        let (catalogue, rejections) = Catalogue::build(["a", "b", "c", "d"].map(counter), LIMITS);
        assert_eq!(catalogue.len(), 3);
        assert!(rejections[0].reason.contains("max_tools"));
    }
}
