//! What a file may cost, counted after aliases have been written out.

use super::node::{Node, Position, Value};
use super::problem::Problem;
use super::read::Limits;

pub(super) struct Budget<'a> {
    limits: &'a Limits,
    /// Copies made for aliases included.
    spent: Size,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Size {
    pub(super) nodes: usize,
    pub(super) bytes: usize,
    /// Levels of lists and mappings.
    pub(super) height: usize,
}

impl<'a> Budget<'a> {
    pub(super) fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            spent: Size::default(),
        }
    }

    pub(super) fn spend(&mut self, size: Size, position: Position) -> Result<(), Problem> {
        self.spent.nodes += size.nodes;
        self.spent.bytes += size.bytes;
        if self.spent.nodes > self.limits.nodes {
            return Err(Problem::too_many_values(position, self.limits.nodes));
        }
        // Without aliases a file cannot hold more text than bytes; with them, one long string could be repeated.
        if self.spent.bytes > self.limits.bytes.saturating_mul(4) {
            return Err(Problem::new(
                position,
                "aliases repeat more text than a file may hold",
                "write the file out, or split it",
            ));
        }
        Ok(())
    }
}

impl Size {
    pub(super) fn leaf(bytes: usize) -> Self {
        Self {
            nodes: 1,
            bytes,
            height: 0,
        }
    }

    pub(super) fn of(node: &Node) -> Self {
        match &node.value {
            Value::String(text) => Self::leaf(text.len()),
            Value::List(items) => items.iter().fold(
                Self {
                    height: 1,
                    ..Self::leaf(0)
                },
                Self::with,
            ),
            Value::Map(entries) => {
                let keys = entries.iter().map(|entry| entry.key.len()).sum();
                let values = entries.iter().map(|entry| &entry.value);
                values.fold(
                    Self {
                        height: 1,
                        ..Self::leaf(keys)
                    },
                    Self::with,
                )
            }
            _ => Self::leaf(0),
        }
    }

    fn with(self, child: &Node) -> Self {
        let child = Self::of(child);
        Self {
            nodes: self.nodes + child.nodes,
            bytes: self.bytes + child.bytes,
            height: self.height.max(child.height + 1),
        }
    }
}
