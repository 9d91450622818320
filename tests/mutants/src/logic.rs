//! Changes to what is decided: an operator, a condition, a number, or a call that is left out.

use std::{collections::BTreeMap, ops::Range};

use quote::ToTokens;
use syn::{BinOp, Expr, ExprBinary, ExprLit, ExprMethodCall, File, Lit, Stmt, UnOp, spanned::Spanned};

use crate::{
    candidates::{About, Candidate, Form, Site},
    source::{self, Source},
    walk::{Meets, Scope, walk},
};

/// Methods that say yes or no.
const JUDGING: &[&str] = &[
    "is_some",
    "is_none",
    "is_ok",
    "is_err",
    "is_empty",
    "is_some_and",
    "is_none_or",
    "contains",
    "contains_key",
    "starts_with",
    "ends_with",
    "all",
    "any",
];
/// Methods, how many arguments they take, and what would be called in their place.
const SWAPPED: &[(&str, usize, &str)] = &[
    ("saturating_add", 1, "saturating_sub"),
    ("saturating_sub", 1, "saturating_add"),
    ("push_back", 1, "push_front"),
    ("push_front", 1, "push_back"),
    ("pop_front", 0, "pop_back"),
    ("pop_back", 0, "pop_front"),
    ("min", 0, "max"),
    ("max", 0, "min"),
    ("min_by_key", 1, "max_by_key"),
    ("max_by_key", 1, "min_by_key"),
    ("position", 1, "rposition"),
    ("first", 0, "last"),
];

/// Whatever of a file's logic can be changed.
pub fn found(source: &Source, file: &File) -> Vec<Candidate> {
    let mut finding = Finding { source, found: Vec::new(), counts: BTreeMap::new() };
    walk(file, &mut finding);
    finding.found
}

struct Finding<'s> {
    source: &'s Source,
    found: Vec<Candidate>,
    /// Of each kind in each function.
    counts: BTreeMap<String, usize>,
}

impl Meets for Finding<'_> {
    fn expression(&mut self, scope: &Scope, expression: &Expr) {
        if scope.is_in_macro {
            return;
        }
        match expression {
            Expr::Binary(binary) => self.binary(scope, binary),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => {
                // What is negated may be a reference, which is no truth by itself.
                let text = format!("!({})", self.text(expression));
                self.always(scope, "negation", expression, text);
            }
            Expr::Lit(ExprLit { lit: Lit::Bool(it), .. }) => {
                self.always(scope, "truth", expression, (!it.value).to_string())
            }
            Expr::Lit(ExprLit { lit: Lit::Int(it), .. }) => {
                // Beyond what the type may hold.
                let next = it.base10_parse::<u64>().ok().filter(|number| *number < 127 || *number > 255);
                if let Some(number) = next {
                    self.always(scope, "number", expression, format!("{}{}", number + 1, it.suffix()));
                }
            }
            Expr::MethodCall(call) => self.method(scope, call),
            Expr::If(it) if is_plain(&it.cond) => {
                let text = format!("!({})", self.text(&it.cond));
                self.always(scope, "condition", &it.cond, text);
            }
            _ => {}
        }
    }

    fn statement(&mut self, scope: &Scope, statement: &Stmt) {
        let Stmt::Expr(expression, Some(_)) = statement else { return };
        let may_be_left_out = match expression {
            Expr::MethodCall(_) | Expr::Call(_) | Expr::Try(_) => true,
            // A variable might have no value then.
            Expr::Assign(assign) => !matches!(*assign.left, Expr::Path(_) | Expr::Tuple(_)),
            Expr::Binary(it) => is_assigning(&it.op),
            _ => false,
        };
        if may_be_left_out {
            self.add(scope, "call", statement.span().byte_range(), Form::Statement, (String::new(), true));
        }
    }
}

/// No other kind of change is made of it.
fn is_plain(condition: &Expr) -> bool {
    match condition {
        Expr::Path(_) | Expr::Field(_) | Expr::Call(_) => true,
        Expr::MethodCall(call) => !JUDGING.contains(&call.method.to_string().as_str()),
        _ => false,
    }
}

fn is_assigning(operator: &BinOp) -> bool {
    matches!(operator, BinOp::AddAssign(_) | BinOp::SubAssign(_) | BinOp::BitOrAssign(_) | BinOp::BitAndAssign(_))
}

/// Returns true if the condition contains `let`, as those of `if` may.
fn binds(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(ExprBinary { left, op: BinOp::And(_), right, .. }) => binds(left) || binds(right),
        _ => false,
    }
}

/// Returns true if the expression is certainly a number; texts are added to as well.
fn is_number(expression: &Expr) -> bool {
    match expression {
        Expr::Lit(ExprLit { lit: Lit::Int(_), .. }) | Expr::Cast(_) => true,
        Expr::MethodCall(call) => ["len", "count"].contains(&call.method.to_string().as_str()),
        _ => false,
    }
}

impl Finding<'_> {
    fn binary(&mut self, scope: &Scope, binary: &ExprBinary) {
        let ExprBinary { left, op, right, .. } = binary;
        let (one, other) = (self.text(left).to_owned(), self.text(right).to_owned());
        let sign = op.to_token_stream().to_string();
        // Both operands are looked at once, as references, so that nothing is moved or done twice.
        let compared = |instead: &str| {
            let between = format!("::kairo_mutants_switch::between(*l {sign} *r, *l {instead} *r)");
            (format!("match (&({one}), &({other})) {{ (l, r) => {between} }}"), false)
        };
        let joined = |instead: &str| {
            let between = format!("::kairo_mutants_switch::between(l {sign} r, l {instead} r)");
            (format!("match ({one}, {other}) {{ (l, r) => {between} }}"), false)
        };
        let replaced = |instead: &str| (format!("{one} {instead} {other}"), true);
        let numbers = is_number(left) || is_number(right);
        let (kind, mutated) = match op {
            BinOp::Eq(_) => ("equality", replaced("!=")),
            BinOp::Ne(_) => ("equality", replaced("==")),
            BinOp::Lt(_) => ("order", compared("<=")),
            BinOp::Le(_) => ("order", compared("<")),
            BinOp::Gt(_) => ("order", compared(">=")),
            BinOp::Ge(_) => ("order", compared(">")),
            BinOp::And(_) if !binds(left) && !binds(right) => ("and or", joined("||")),
            BinOp::Or(_) => ("and or", joined("&&")),
            BinOp::Add(_) if numbers => ("sum", replaced("-")),
            BinOp::Sub(_) if numbers => ("sum", replaced("+")),
            _ => return,
        };
        self.add(scope, kind, binary.span().byte_range(), Form::Expression, mutated);
    }

    fn method(&mut self, scope: &Scope, call: &ExprMethodCall) {
        let method = call.method.to_string();
        let (whole, receiver) = (self.text(call).to_owned(), self.text(&call.receiver).to_owned());
        let is_parser = matches!(method.as_str(), "any" | "all") && call.args.is_empty();
        if JUDGING.contains(&method.as_str()) && !is_parser {
            return self.always(scope, "judgement", call, format!("!({whole})"));
        }
        let argument = call.args.first().map(|argument| self.text(argument).to_owned()).unwrap_or_default();
        let swapped = SWAPPED.iter().find(|(name, count, _)| *name == method && *count == call.args.len());
        // What is borrowed from a value in passing does not outlive its switch.
        let lends = method == "first" && !matches!(*call.receiver, Expr::Path(_) | Expr::Field(_));
        if let Some((.., instead)) = swapped.filter(|_| !lends) {
            return self.always(scope, "method", call, format!("({receiver}).{instead}({argument})"));
        }
        match (method.as_str(), call.args.first()) {
            ("min" | "max", Some(_)) if call.args.len() == 1 => {
                let instead = if method == "min" { "max" } else { "min" };
                let note = "::kairo_mutants_switch::note(l != r)";
                let mutated = format!("match ({receiver}, {argument}) {{ (l, r) => {{ {note}; l.{instead}(r) }} }}");
                self.add(scope, "method", call.span().byte_range(), Form::Expression, (mutated, false));
            }
            ("take", Some(count)) if call.args.len() == 1 => self.always(scope, "method", count, "1".to_owned()),
            ("skip", Some(count)) if call.args.len() == 1 => {
                self.always(scope, "method", count, format!("({argument}) + 1"))
            }
            _ => {}
        }
    }

    fn text(&self, of: &impl Spanned) -> &str {
        source::at(&self.source.text, of.span().byte_range())
    }

    fn always(&mut self, scope: &Scope, kind: &'static str, of: &impl Spanned, mutated: String) {
        self.add(scope, kind, of.span().byte_range(), Form::Expression, (mutated, true));
    }

    /// Adds a candidate; `mutated` is its replacement, with true if that is another value whenever it is evaluated.
    fn add(&mut self, scope: &Scope, kind: &'static str, range: Range<usize>, form: Form, mutated: (String, bool)) {
        let Source { path, text } = self.source;
        let place = format!("{path}::{}::{kind}", scope.function);
        let count = self.counts.entry(place.clone()).or_default();
        *count += 1;
        let (mutated, is_always_other) = mutated;
        let original = source::at(text, range.clone()).to_owned();
        let site = Site { range: range.clone(), form, mutated: mutated.clone(), is_always_other, name: String::new() };
        self.found.push(Candidate {
            identity: format!("{place}::{count}"),
            about: About::Logic,
            kind,
            file: path.clone(),
            line: source::line(text, range.start),
            original,
            mutated,
            piece: String::new(),
            range,
            sites: vec![(path.clone(), site)],
        });
    }
}
