//! The grammar of Kubernetes' JSONPath, as client-go reads it.
//!
//! The texts of errors are client-go's, because they end up in conditions that people search for. Some rules are odd
//! and kept: `['a.b']` are two keys (a dot in a key is written `\.`), blanks, `$` and `@` between steps mean nothing,
//! and `[]` is the first item.

/// One step from a value to others.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Field(String),
    Wildcard,
    /// `..`: whatever comes next is looked for at any depth.
    Recursive,
    Item(i64),
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        step: Option<i64>,
    },
    Union(Vec<Vec<Self>>),
    Filter(Filter),
    Literal(Literal),
    /// A word without a dot before it, such as `range`.
    Word(String),
}

/// The condition of `[?(…)]`; each side is a path from the item, or a single literal.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Filter {
    Exists(Vec<Step>),
    Compare {
        left: Vec<Step>,
        operator: String,
        right: Vec<Step>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
}

/// Reads a path as it is written between braces.
pub(super) fn read(path: &str) -> Result<Vec<Step>, String> {
    let text = format!("{path}}}");
    let mut reader = Reader {
        text: &text,
        position: 0,
        steps: Vec::new(),
    };
    reader.steps()?;
    if reader.position < text.len() {
        return Err("several expressions are not supported, write one path".to_owned());
    }
    Ok(reader.steps)
}

struct Reader<'a> {
    text: &'a str,
    position: usize,
    steps: Vec<Step>,
}

impl<'a> Reader<'a> {
    fn steps(&mut self) -> Result<(), String> {
        loop {
            let rest = self.rest();
            if rest.starts_with('}') {
                self.position += 1;
                return Ok(());
            } else if rest.starts_with("[?(") {
                self.position += 3;
                self.filter()?;
            } else if rest.starts_with("..") {
                self.position += 2;
                self.recursive()?;
            } else {
                self.step()?;
            }
        }
    }

    fn step(&mut self) -> Result<(), String> {
        match self.next() {
            None | Some('\r' | '\n') => return Err("unclosed action".to_owned()),
            Some(' ' | '@' | '$') => {}
            Some('[') => self.brackets()?,
            Some(quote @ ('"' | '\'')) => self.quoted(quote)?,
            Some('.') => self.field(),
            Some(first) if first == '+' || first == '-' || first.is_numeric() => {
                self.position -= first.len_utf8();
                self.number()?;
            }
            Some(first) if is_word(first) => {
                self.position -= first.len_utf8();
                self.word();
            }
            Some(other) => {
                return Err(format!(
                    "unrecognized character in action: U+{:04X} '{other}'",
                    u32::from(other)
                ));
            }
        }
        Ok(())
    }

    fn recursive(&mut self) -> Result<(), String> {
        if self.steps.last() == Some(&Step::Recursive) {
            return Err("invalid multiple recursive descent".to_owned());
        }
        self.steps.push(Step::Recursive);
        if self.rest().starts_with(is_word) {
            self.field();
        }
        Ok(())
    }

    /// Reads a key after its dot. A backslash takes any meaning from the character after it.
    fn field(&mut self) {
        let start = self.position;
        while let Some(next) = self.peek() {
            if next == '\\' {
                self.next();
                self.next();
            } else if is_terminator(next) {
                break;
            } else {
                self.next();
            }
        }
        let name = &self.text[start..self.position];
        self.steps.push(if name == "*" {
            Step::Wildcard
        } else {
            Step::Field(name.replace('\\', ""))
        });
    }

    fn word(&mut self) {
        let start = self.position;
        while self.peek().is_some_and(|next| !is_terminator(next)) {
            self.next();
        }
        self.steps.push(match &self.text[start..self.position] {
            "true" => Step::Literal(Literal::Bool(true)),
            "false" => Step::Literal(Literal::Bool(false)),
            word => Step::Word(word.to_owned()),
        });
    }

    fn number(&mut self) -> Result<(), String> {
        let start = self.position;
        if self.rest().starts_with(['+', '-']) {
            self.next();
        }
        while self
            .peek()
            .is_some_and(|next| next == '.' || next.is_numeric())
        {
            self.next();
        }
        let number = &self.text[start..self.position];
        let literal = number
            .parse()
            .map(Literal::Integer)
            .or_else(|_| number.parse().map(Literal::Float))
            .map_err(|_| format!("cannot parse number {number}"))?;
        self.steps.push(Step::Literal(literal));
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Result<(), String> {
        let start = self.position;
        loop {
            match self.next() {
                None | Some('\n') => return Err("unterminated quoted string".to_owned()),
                Some(next) if next == quote && !self.is_escaped() => break,
                Some(_) => {}
            }
        }
        let inner = &self.text[start..self.position - 1];
        let text = unquote(inner).ok_or_else(|| {
            let whole = &self.text[start - 1..self.position];
            format!("unquote string {whole} error invalid syntax")
        })?;
        self.steps.push(Step::Literal(Literal::Text(text)));
        Ok(())
    }

    fn brackets(&mut self) -> Result<(), String> {
        let start = self.position;
        loop {
            match self.next() {
                None | Some('\n') => return Err("unterminated array".to_owned()),
                Some(']') => break,
                Some(_) => {}
            }
        }
        let inner = &self.text[start..self.position - 1];
        let members: Vec<&str> = inner.split(',').collect();
        if members.len() > 1 {
            let members = members
                .into_iter()
                .map(|member| read(&format!("[{}]", member.trim_matches(' '))))
                .collect::<Result<_, _>>()?;
            self.steps.push(Step::Union(members));
        } else if let Some(key) = quoted_key(inner) {
            self.steps.extend(read(&format!(".{key}"))?);
        } else {
            self.steps.push(item_or_slice(inner)?);
        }
        Ok(())
    }

    fn filter(&mut self) -> Result<(), String> {
        let start = self.position;
        let mut quote = None;
        let mut closed = false;
        loop {
            match self.next() {
                None | Some('\n') => return Err("unterminated filter".to_owned()),
                Some(next @ ('"' | '\'')) => match quote {
                    None => quote = Some(next),
                    Some(quote) if quote == next && !self.is_escaped() => closed = true,
                    Some(_) => {}
                },
                Some(')') if quote.is_some() == closed => break,
                Some(_) => {}
            }
        }
        let inner = &self.text[start..self.position - 1];
        if self.next() != Some(']') {
            return Err("unclosed array expect ]".to_owned());
        }
        let filter = match split_comparison(inner) {
            None => Filter::Exists(read(inner)?),
            Some((left, operator, right)) => Filter::Compare {
                left: read(left)?,
                operator: operator.to_owned(),
                right: read(right)?,
            },
        };
        self.steps.push(Step::Filter(filter));
        Ok(())
    }

    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.position += next.len_utf8();
        Some(next)
    }

    /// Whether a backslash stands before the quote just read.
    fn is_escaped(&self) -> bool {
        self.text[..self.position - 1].ends_with('\\')
    }
}

/// The text between single quotes.
fn quoted_key(inner: &str) -> Option<&str> {
    let key = inner.strip_prefix('\'')?.strip_suffix('\'')?;
    (!key.contains('\'')).then_some(key)
}

fn item_or_slice(inner: &str) -> Result<Step, String> {
    let parts: Vec<&str> = match inner {
        "*" => vec!["", ""],
        "" => vec!["0"],
        inner => inner.split(':').collect(),
    };
    let is_bound =
        |part: &&str| part.trim_start_matches('-').len() + 1 >= part.len() && is_digits(part);
    if parts.len() > 3 || !parts.iter().all(is_bound) {
        return Err(format!("invalid array index {inner}"));
    }
    let bound = |position: usize| match parts.get(position) {
        None | Some(&"") => Ok(None),
        Some(part) => part
            .parse()
            .map(Some)
            .map_err(|_| format!("array index {part} is not a number")),
    };
    match (parts.len(), bound(0)?) {
        (1, Some(index)) => Ok(Step::Item(index)),
        (_, start) => Ok(Step::Slice {
            start,
            end: bound(1)?,
            step: bound(2)?,
        }),
    }
}

fn is_digits(part: &str) -> bool {
    part.trim_start_matches('-')
        .bytes()
        .all(|byte| byte.is_ascii_digit())
}

/// Splits at the first run of operator characters that has something on both sides.
fn split_comparison(inner: &str) -> Option<(&str, &str, &str)> {
    const OPERATORS: [char; 4] = ['!', '<', '>', '='];
    let start = inner.find(OPERATORS).filter(|start| *start > 0)?;
    let (left, rest) = inner.split_at(start);
    let length = rest.find(|next| !OPERATORS.contains(&next))?;
    let (operator, right) = rest.split_at(length);
    Some((left, operator, right))
}

/// Replaces the escapes of Go's string literals.
fn unquote(inner: &str) -> Option<String> {
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner.chars();
    while let Some(next) = rest.next() {
        if next != '\\' {
            text.push(next);
            continue;
        }
        text.push(match rest.next()? {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' => code_point(&mut rest, 2)?,
            'u' => code_point(&mut rest, 4)?,
            'U' => code_point(&mut rest, 8)?,
            same @ ('\\' | '\'' | '"') => same,
            _ => return None,
        });
    }
    Some(text)
}

fn code_point(rest: &mut std::str::Chars<'_>, digits: usize) -> Option<char> {
    let mut value = 0;
    for _ in 0..digits {
        value = value * 16 + rest.next()?.to_digit(16)?;
    }
    char::from_u32(value)
}

fn is_word(character: char) -> bool {
    character == '_' || character.is_alphabetic() || character.is_numeric()
}

fn is_terminator(character: char) -> bool {
    matches!(
        character,
        ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}'
    )
}
