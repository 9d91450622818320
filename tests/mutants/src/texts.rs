//! Changes to what models read: the prompts, the descriptions of tools, what is told to be in progress, and every other text
//! that the mind writes.

use std::{collections::BTreeMap, ops::Range};

use proc_macro2::{TokenStream, TokenTree};
use syn::{Expr, ExprLit, ExprPath, File, Item, Lit, LitStr, Macro, spanned::Spanned};

use crate::{
    candidates::{About, Candidate, Form, Site},
    source::{self, Source},
    walk::{Meets, Scope, arguments, walk},
    wording::{self, Reworded},
};

/// The file whose texts others name with it.
const PROMPTS: &str = "crates/mind/src/prompts.rs";

/// A text, and where it is used.
struct Text<'s> {
    source: &'s Source,
    /// The function that it stands in, or its name.
    owner: String,
    literal: LitStr,
    uses: Vec<Use<'s>>,
}

struct Use<'s> {
    source: &'s Source,
    range: Range<usize>,
    form: Form,
    name: String,
    /// The code before and behind the text, where that is a macro.
    around: Option<(String, String)>,
}

/// Whatever of these files' texts can be changed.
pub fn found(files: &[(&Source, File)]) -> Vec<Candidate> {
    let mut finding = Finding { source: None, texts: Vec::new(), constants: BTreeMap::new() };
    for (source, file) in files {
        finding.add_constants(source, file);
    }
    for (source, file) in files {
        finding.source = Some(source);
        walk(file, &mut finding);
    }
    let mut counts = BTreeMap::new();
    finding.texts.iter().flat_map(|text| candidates(text, &mut counts)).collect()
}

struct Finding<'s> {
    /// The file that is looked at.
    source: Option<&'s Source>,
    texts: Vec<Text<'s>>,
    /// By their file and name, which of the texts they are.
    constants: BTreeMap<(String, String), usize>,
}

impl<'s> Finding<'s> {
    fn add_constants(&mut self, source: &'s Source, file: &File) {
        for item in &file.items {
            let Item::Const(item) = item else { continue };
            let Expr::Lit(ExprLit { lit: Lit::Str(literal), .. }) = &*item.expr else { continue };
            if wording::is_prose(&literal.value()) {
                let owner = item.ident.to_string();
                self.constants.insert((source.path.clone(), owner.clone()), self.texts.len());
                self.texts.push(Text { source, owner, literal: literal.clone(), uses: Vec::new() });
            }
        }
    }

    /// The text that a name stands for: of the same file, or of the prompts.
    fn named(&self, path: &syn::Path) -> Option<usize> {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let (file, name) = match names.as_slice() {
            [name] => (self.source?.path.as_str(), name),
            [.., module, name] if module == "prompts" => (PROMPTS, name),
            _ => return None,
        };
        self.constants.get(&(file.to_owned(), name.clone())).copied()
    }

    fn use_constant(&mut self, text: usize, range: Range<usize>, form: Form, name: &str) {
        let Some(source) = self.source else { return };
        let name = name.to_owned();
        if let Some(text) = self.texts.get_mut(text) {
            text.uses.push(Use { source, range, form, name, around: None });
        }
    }

    fn use_literal(&mut self, scope: &Scope, literal: &LitStr, whole: Option<Range<usize>>) {
        let Some(source) = self.source.filter(|_| wording::is_prose(&literal.value())) else { return };
        let own = literal.span().byte_range();
        let around = whole.clone().map(|whole| {
            let text = |range| source::at(&source.text, range).to_owned();
            (text(whole.start..own.start), text(own.end..whole.end))
        });
        let range = whole.unwrap_or(own);
        let it = Use { source, range, form: Form::Expression, name: String::new(), around };
        self.texts.push(Text { source, owner: scope.function.clone(), literal: literal.clone(), uses: vec![it] });
    }

    fn format(&mut self, scope: &Scope, whole: Range<usize>, call: &Macro) {
        let arguments = arguments(call).unwrap_or_default();
        let Some(Expr::Lit(ExprLit { lit: Lit::Str(literal), .. })) = arguments.first() else { return };
        self.use_literal(scope, literal, Some(whole));
        let Some(end) = arguments.last().map(|last| last.span().byte_range().end) else { return };
        let Some(file) = self.source.map(|source| source.path.clone()) else { return };
        let is_named = |name: &str| literal.value().contains(&format!("{{{name}}}"));
        let named: Vec<(String, usize)> = self
            .constants
            .iter()
            .filter(|((of, name), _)| *of == file && is_named(name))
            .map(|((_, name), text)| (name.clone(), *text))
            .collect();
        for (name, text) in named {
            self.use_constant(text, end..end, Form::Argument, &name);
        }
    }

    /// The values in JSON; what stands before a colon is the name of a field.
    fn json(&mut self, scope: &Scope, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            let is_name = matches!(tokens.get(at + 1), Some(TokenTree::Punct(sign)) if sign.as_char() == ':');
            match token {
                TokenTree::Group(group) => self.json(scope, group.stream()),
                TokenTree::Literal(literal) if !is_name => {
                    if let Ok(literal) = syn::parse2::<LitStr>(TokenTree::Literal(literal.clone()).into()) {
                        self.use_literal(scope, &literal, None);
                    }
                }
                _ => {}
            }
        }
    }
}

impl Meets for Finding<'_> {
    fn expression(&mut self, scope: &Scope, expression: &Expr) {
        match expression {
            Expr::Lit(ExprLit { lit: Lit::Str(literal), .. }) => self.use_literal(scope, literal, None),
            Expr::Path(ExprPath { path, .. }) => {
                if let Some(text) = self.named(path) {
                    self.use_constant(text, expression.span().byte_range(), Form::Expression, "");
                }
            }
            _ => {}
        }
    }

    fn macro_call(&mut self, scope: &Scope, expression: &Expr, call: &Macro) {
        if call.path.is_ident("format") {
            self.format(scope, expression.span().byte_range(), call);
        } else if call.path.is_ident("json") {
            self.json(scope, call.tokens.clone());
        }
    }
}

fn candidates(text: &Text<'_>, counts: &mut BTreeMap<String, usize>) -> Vec<Candidate> {
    let Text { source, owner, literal, uses } = text;
    let is_format = uses.iter().any(|it| it.around.is_some());
    let range = literal.span().byte_range();
    let candidate = |Reworded { kind, original, text, piece }| {
        let place = format!("{}::{owner}::{kind}", source.path);
        let count = counts.entry(place.clone()).or_default();
        *count += 1;
        let literal = format!("{text:?}");
        Candidate {
            identity: format!("{place}::{count}"),
            about: About::Prompt,
            kind,
            file: source.path.clone(),
            line: source::line(&source.text, range.start),
            original,
            mutated: text,
            piece,
            range: range.clone(),
            sites: uses.iter().map(|it| (it.source.path.clone(), site(it, &literal))).collect(),
        }
    };
    wording::changes(&literal.value(), is_format).into_iter().map(candidate).collect()
}

fn site(it: &Use<'_>, literal: &str) -> Site {
    let mutated = match &it.around {
        Some((before, behind)) => format!("{before}{literal}{behind}"),
        None => literal.to_owned(),
    };
    Site { range: it.range.clone(), form: it.form, mutated, is_always_other: true, name: it.name.clone() }
}
