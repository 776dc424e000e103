//! Optional fields in CEL, `object.?a.b`, as the engine can carry them out.
//!
//! cel 0.13 fails on `.?a` when `a` is missing, and on `.b` after it, but has both right for `[?'a']`. So each is
//! rewritten to that before it runs.

use kube_cel::cel::{
    IdedExpr,
    common::ast::{CallExpr, EntryExpr, Expr, LiteralValue, operators},
};

/// Rewrites an expression and all within it.
pub(super) fn rewrite(expression: &mut IdedExpr) {
    match &mut expression.expr {
        Expr::Call(call) => {
            call.target.iter_mut().for_each(|target| rewrite(target));
            call.args.iter_mut().for_each(rewrite);
            if call.func_name == operators::OPT_SELECT {
                operators::OPT_INDEX.clone_into(&mut call.func_name);
            }
        }
        Expr::Select(select) => {
            rewrite(&mut select.operand);
            if !select.test && is_optional(&select.operand) {
                let field = IdedExpr {
                    id: expression.id,
                    expr: Expr::Literal(LiteralValue::String(select.field.as_str().into())),
                };
                expression.expr = Expr::Call(CallExpr {
                    func_name: operators::OPT_INDEX.to_owned(),
                    target: None,
                    args: vec![std::mem::take(&mut *select.operand), field],
                });
            }
        }
        Expr::Comprehension(comprehension) => {
            rewrite(&mut comprehension.iter_range);
            rewrite(&mut comprehension.accu_init);
            rewrite(&mut comprehension.loop_cond);
            rewrite(&mut comprehension.loop_step);
            rewrite(&mut comprehension.result);
        }
        Expr::List(list) => list.elements.iter_mut().for_each(rewrite),
        Expr::Map(map) => map
            .entries
            .iter_mut()
            .for_each(|entry| rewrite_entry(&mut entry.expr)),
        Expr::Struct(message) => message
            .entries
            .iter_mut()
            .for_each(|entry| rewrite_entry(&mut entry.expr)),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

fn rewrite_entry(entry: &mut EntryExpr) {
    match entry {
        EntryExpr::StructField(field) => rewrite(&mut field.value),
        EntryExpr::MapEntry(entry) => {
            rewrite(&mut entry.key);
            rewrite(&mut entry.value);
        }
    }
}

/// Whether an expression that was rewritten is an optional by its form.
fn is_optional(expression: &IdedExpr) -> bool {
    matches!(&expression.expr, Expr::Call(call) if call.func_name == operators::OPT_INDEX)
}
