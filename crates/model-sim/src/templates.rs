//! Templates in answers, compiled once when the scenario is read.

use minijinja::{AutoEscape, Environment, Error, UndefinedBehavior, Value as TemplateValue};
use serde_json::{Map, Value};

/// The compiled templates of one scenario, found by the name of the place they were written in.
pub struct Templates {
    environment: Environment<'static>,
}

/// A text of the scenario: most have no template in them and cost nothing to render.
#[derive(Debug)]
pub enum TemplateText {
    Literal(String),
    /// The name of a template.
    Template(String),
}

/// A tool argument, or a part of one.
#[derive(Debug)]
pub enum Argument {
    Literal(Value),
    Text(TemplateText),
    /// The name of a template that consists of one `{{ expression }}`, whose value keeps its type.
    Expression(String),
    List(Vec<Argument>),
    Map(Vec<(String, Argument)>),
}

/// Name of the value in a whole-expression template.
const EXPRESSION_VALUE: &str = "value";

impl Default for Templates {
    fn default() -> Self {
        let mut environment = Environment::new();
        // A misspelt variable must show, yet `a or b` should work for results of several shapes.
        environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
        // Else an argument called `page.html` would be escaped for what its name ends in.
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.add_filter("having", having);
        Self { environment }
    }
}

impl Templates {
    /// Compiles a text; `name` says where it stands in the scenario and must be unique.
    ///
    /// # Errors
    /// If the template is wrong: the mistake, in one line.
    pub fn compile_text(&mut self, name: &str, source: String) -> Result<TemplateText, String> {
        if !is_template(&source) {
            return Ok(TemplateText::Literal(source));
        }
        self.add(name, source)?;
        Ok(TemplateText::Template(name.to_owned()))
    }

    /// Compiles an argument and everything in it, collecting the mistakes.
    ///
    /// # Errors
    /// One line for each part that does not compile.
    pub fn compile_argument(&mut self, name: &str, value: Value) -> Result<Argument, Vec<String>> {
        match value {
            Value::String(source) => {
                if let Some(expression) = whole_expression(&source) {
                    let set = format!("{{% set {EXPRESSION_VALUE} = ({expression}) %}}");
                    self.add(name, set).map_err(|mistake| vec![mistake])?;
                    return Ok(Argument::Expression(name.to_owned()));
                }
                let text = self.compile_text(name, source).map_err(|mistake| vec![mistake])?;
                Ok(Argument::Text(text))
            }
            Value::Array(items) => {
                let parts = items
                    .into_iter()
                    .enumerate()
                    .map(|(index, item)| self.compile_argument(&format!("{name}[{index}]"), item));
                collect_all(parts).map(Argument::List)
            }
            Value::Object(fields) => {
                let parts = fields.into_iter().map(|(key, field)| {
                    let compiled = self.compile_argument(&format!("{name}.{key}"), field)?;
                    Ok((key, compiled))
                });
                collect_all(parts).map(Argument::Map)
            }
            literal => Ok(Argument::Literal(literal)),
        }
    }

    fn add(&mut self, name: &str, source: String) -> Result<(), String> {
        self.environment.add_template_owned(name.to_owned(), source).map_err(|error| format!("{name}: {error}"))
    }

    /// Renders a text.
    ///
    /// # Errors
    /// If rendering fails: the mistake and the template, for instance an undefined variable.
    pub fn render_text(&self, text: &TemplateText, context: &TemplateValue) -> Result<String, String> {
        match text {
            TemplateText::Literal(literal) => Ok(literal.clone()),
            TemplateText::Template(name) => self
                .environment
                .get_template(name)
                .and_then(|template| template.render(context.clone()))
                .map_err(|error| error.to_string()),
        }
    }

    /// Renders an argument and everything in it.
    ///
    /// # Errors
    /// As [`Templates::render_text`].
    pub fn render_argument(&self, argument: &Argument, context: &TemplateValue) -> Result<Value, String> {
        match argument {
            Argument::Literal(value) => Ok(value.clone()),
            Argument::Text(text) => self.render_text(text, context).map(Value::String),
            Argument::Expression(name) => self.expression(name, context),
            Argument::List(items) => items
                .iter()
                .map(|item| self.render_argument(item, context))
                .collect::<Result<Vec<_>, _>>()
                .map(Value::Array),
            Argument::Map(fields) => fields
                .iter()
                .map(|(key, field)| Ok((key.clone(), self.render_argument(field, context)?)))
                .collect::<Result<Map<_, _>, String>>()
                .map(Value::Object),
        }
    }

    fn expression(&self, name: &str, context: &TemplateValue) -> Result<Value, String> {
        let rendered = self
            .environment
            .get_template(name)
            .and_then(|template| template.render_captured(context.clone()))
            .map_err(|error| error.to_string())?;
        match rendered.state().lookup(EXPRESSION_VALUE) {
            Some(value) if !value.is_undefined() => {
                serde_json::to_value(&value).map_err(|error| format!("{name}: {error}"))
            }
            _ => Err(format!("{name}: the expression is undefined")),
        }
    }
}

/// The items of a list that contain a text, in whatever case; of an item that is no text, its JSON counts.
fn having(list: TemplateValue, text: &str) -> Result<Vec<TemplateValue>, Error> {
    let text = text.to_lowercase();
    let items = list.try_iter()?;
    Ok(items.filter(|item| item.to_string().to_lowercase().contains(&text)).collect())
}

fn is_template(source: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|opening| source.contains(opening))
}

/// The inside of a text that is nothing but one `{{ ... }}`.
fn whole_expression(source: &str) -> Option<&str> {
    let inside = source.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    (!inside.contains("{{") && !inside.contains("}}")).then_some(inside)
}

/// Like `collect`, but goes on after a failure to find the others.
fn collect_all<T>(parts: impl Iterator<Item = Result<T, Vec<String>>>) -> Result<Vec<T>, Vec<String>> {
    let mut collected = Vec::new();
    let mut mistakes = Vec::new();
    for part in parts {
        match part {
            Ok(value) => collected.push(value),
            Err(more) => mistakes.extend(more),
        }
    }
    if mistakes.is_empty() { Ok(collected) } else { Err(mistakes) }
}

#[cfg(test)]
mod tests {
    use minijinja::context;
    use serde_json::json;

    use super::*;

    fn rendered(value: Value) -> Result<Value, String> {
        let mut templates = Templates::default();
        let argument = templates.compile_argument("here", value).expect("it compiles");
        let context = context! { words => "a b", n => 3, last => context! { now => "noon" } };
        templates.render_argument(&argument, &context)
    }

    #[test]
    fn a_whole_expression_keeps_its_type_and_a_mixed_text_is_a_string() {
        assert_eq!(rendered(json!("{{ words | split }}")), Ok(json!(["a", "b"])));
        assert_eq!(rendered(json!("{{ n }}")), Ok(json!(3)));
        assert_eq!(rendered(json!("n={{ n }}")), Ok(json!("n=3")));
    }

    #[test]
    fn templates_are_rendered_at_any_depth() {
        assert_eq!(rendered(json!({"a": [{"b": "{{ last.now }}"}, true]})), Ok(json!({"a": [{"b": "noon"}, true]})),);
    }

    #[test]
    fn an_undefined_variable_is_an_error_that_names_its_place_unless_an_or_provides_for_it() {
        let error = rendered(json!({"x": "{{ missing }}"})).expect_err("it is undefined");
        assert!(error.contains("here.x"), "{error}");
        let error = rendered(json!("so: {{ missing }}")).expect_err("it is undefined");
        assert!(error.contains("here"), "{error}");
        assert_eq!(rendered(json!("{{ last.result or last.now }}")), Ok(json!("noon")));
    }

    #[test]
    fn items_are_found_by_what_they_contain() {
        let context = context! { threads => [context! { id => 1, title => "Schedule" }, context! { id => 2 }] };
        let mut templates = Templates::default();
        let rendered = |templates: &Templates, argument| templates.render_argument(&argument, &context);
        let one = templates.compile_argument("one", json!("{{ (threads | having('schedule') | first).id }}"));
        assert_eq!(rendered(&templates, one.expect("it compiles")), Ok(json!(1)));
        let none = templates.compile_argument("none", json!("{{ (threads | having('mail') | first).id }}"));
        assert!(rendered(&templates, none.expect("it compiles")).is_err());
    }

    #[test]
    fn every_template_that_does_not_compile_is_named() {
        let mistakes = Templates::default()
            .compile_argument("call", json!({"a": "{{ ", "b": ["{% if %}"], "c": "fine"}))
            .expect_err("two are broken");
        assert_eq!(mistakes.len(), 2, "{mistakes:?}");
        assert!(mistakes[0].starts_with("call.a: "), "{mistakes:?}");
        assert!(mistakes[1].starts_with("call.b[0]: "), "{mistakes:?}");
    }
}
