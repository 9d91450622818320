//! Every expression and statement of a file that a switch can stand at: not those of tests, constants, patterns, types and
//! attributes, which are no code that runs.

use syn::{
    Attribute, Block, Expr, ExprLit, File, ImplItem, ImplItemFn, Item, ItemFn, ItemImpl, Lit, Macro, Pat, Signature,
    Stmt, Token, TraitItemFn, Type, UnOp,
    punctuated::Punctuated,
    visit::{self, Visit},
};

/// The surroundings of an expression.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// With its type, where it is a method.
    pub function: String,
    pub is_in_macro: bool,
}

/// A visitor of expressions, statements and macro calls.
pub trait Meets {
    fn expression(&mut self, _: &Scope, _: &Expr) {}
    fn statement(&mut self, _: &Scope, _: &Stmt) {}
    fn macro_call(&mut self, _: &Scope, _: &Expr, _: &Macro) {}
}

/// Tells of all of a file.
pub fn walk(file: &File, meets: &mut impl Meets) {
    let mut walk = Walk { scope: Scope::default(), meets };
    walk.visit_file(file);
}

/// The arguments of a macro whose arguments are expressions.
pub fn arguments(call: &Macro) -> Option<Punctuated<Expr, Token![,]>> {
    let takes_expressions = call.path.is_ident("format") || call.path.is_ident("vec");
    takes_expressions.then(|| call.parse_body_with(Punctuated::parse_terminated).ok()).flatten()
}

struct Walk<'m, M> {
    scope: Scope,
    meets: &'m mut M,
}

impl<M: Meets> Walk<'_, M> {
    fn function(&mut self, attributes: &[Attribute], signature: &Signature, owner: Option<&str>, block: &Block) {
        // A constant function may not look at a switch.
        if is_of_tests(attributes) || signature.constness.is_some() {
            return;
        }
        let name = signature.ident.to_string();
        let name = owner.map_or_else(|| name.clone(), |owner| format!("{owner}::{name}"));
        let outer = std::mem::replace(&mut self.scope.function, name);
        self.visit_block(block);
        self.scope.function = outer;
    }

    fn macro_call(&mut self, expression: &Expr, call: &Macro) {
        self.meets.macro_call(&self.scope, expression, call);
        let outer = std::mem::replace(&mut self.scope.is_in_macro, true);
        // The format itself has to stay a literal.
        let formats = usize::from(call.path.is_ident("format"));
        arguments(call).iter().flatten().skip(formats).for_each(|argument| self.visit_expr(argument));
        self.scope.is_in_macro = outer;
    }
}

impl<'ast, M: Meets> Visit<'ast> for Walk<'_, M> {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Fn(ItemFn { attrs, sig, block, .. }) => self.function(attrs, sig, None, block),
            Item::Impl(item) => self.visit_item_impl(item),
            Item::Trait(item) => visit::visit_item_trait(self, item),
            Item::Mod(module) if !is_of_tests(&module.attrs) => visit::visit_item_mod(self, module),
            _ => {}
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let owner =
            path_of(&item.self_ty).and_then(|path| path.segments.last()).map(|segment| segment.ident.to_string());
        // Two traits may have the same method.
        let of =
            item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last()).map(|it| format!("{} as ", it.ident));
        let owner = format!("{}{}", of.unwrap_or_default(), owner.unwrap_or_default());
        for item in &item.items {
            if let ImplItem::Fn(ImplItemFn { attrs, sig, block, .. }) = item {
                self.function(attrs, sig, Some(&owner), block);
            }
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.attrs, &item.sig, None, block);
        }
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        self.meets.statement(&self.scope, statement);
        visit::visit_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        self.meets.expression(&self.scope, expression);
        match expression {
            Expr::Macro(call) => self.macro_call(expression, &call.mac),
            // The length is a constant.
            Expr::Repeat(repeat) => self.visit_expr(&repeat.expr),
            Expr::Const(_) => {}
            // A negative number is no number with something before it.
            Expr::Unary(unary) if is_negative(unary.op, &unary.expr) => {}
            _ => visit::visit_expr(self, expression),
        }
    }

    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_pat(&mut self, _: &'ast Pat) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_path(&mut self, _: &'ast syn::Path) {}
}

fn path_of(of: &Type) -> Option<&syn::Path> {
    if let Type::Path(path) = of { Some(&path.path) } else { None }
}

fn is_negative(sign: UnOp, of: &Expr) -> bool {
    matches!((sign, of), (UnOp::Neg(_), Expr::Lit(ExprLit { lit: Lit::Int(_) | Lit::Float(_), .. })))
}

fn is_of_tests(attributes: &[Attribute]) -> bool {
    let tokens =
        |attribute: &Attribute| attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test");
    attributes.iter().any(|attribute| attribute.path().is_ident("cfg") && tokens(attribute))
}
