//! The child process: limits itself, then answers questions until its parent closes the pipe.

use std::io::{self, ErrorKind, Read, Write};

use rustix::{
    process::{Resource, Rlimit, setrlimit},
    time::{ClockId, clock_gettime},
};
use serde_json::Value;

use super::{
    feedback, ignore,
    protocol::{self, Answer, Question, Request},
    rules,
};

/// Heap of the child. An object of the largest size takes a tenth of it as values.
pub const MEMORY: u64 = 256 << 20;

/// The heap and everything that is mapped, of which the program itself is the most.
const ADDRESS_SPACE: u64 = 1 << 30;

/// Seconds of processor time after which the kernel ends a child whose parent was not there to do so.
const BACKSTOP: u64 = 3;

/// Serves the parent on stdin and stdout.
pub fn run() -> io::Result<()> {
    limit(Resource::Data, MEMORY)?;
    limit(Resource::As, ADDRESS_SPACE)?;
    limit(Resource::Core, 0)?;
    serve(io::stdin().lock(), io::stdout().lock())
}

fn limit(resource: Resource, bytes: u64) -> io::Result<()> {
    let limit = Rlimit {
        current: Some(bytes),
        maximum: Some(bytes),
    };
    Ok(setrlimit(resource, limit)?)
}

fn serve(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    send(&mut output, &Answer::Ready)?;
    while let Some(mut request) = receive(&mut input)? {
        for question in request.questions {
            limit_time()?;
            send(&mut output, &answer(&mut request.object, question))?;
        }
    }
    Ok(())
}

fn answer(object: &mut Value, question: Question) -> Answer {
    match question {
        Question::Value(wanted, options) => {
            Answer::Value(feedback::value(object, &wanted, options))
        }
        Question::Condition(rule) => Answer::Condition(rules::condition(object, &rule)),
        Question::Remove(selector) => {
            let removed = ignore::remove(object.take(), &selector);
            Answer::Removed(removed.map(|left| *object = left))
        }
        Question::Object => Answer::Object(object.take()),
    }
}

/// The kernel counts a process' whole life, so the limit moves along. Only the soft one: a hard one cannot be raised.
fn limit_time() -> io::Result<()> {
    let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec;
    let limit = Rlimit {
        current: Some(u64::try_from(used).unwrap_or_default() + BACKSTOP),
        maximum: None,
    };
    Ok(setrlimit(Resource::Cpu, limit)?)
}

fn receive(input: &mut impl Read) -> io::Result<Option<Request<Value, Vec<Question>>>> {
    let mut prefix = [0; protocol::PREFIX];
    match input.read_exact(&mut prefix) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let mut frame = vec![0; protocol::length(prefix)?];
    input.read_exact(&mut frame)?;
    Ok(Some(serde_json::from_slice(&frame)?))
}

fn send(output: &mut impl Write, answer: &Answer) -> io::Result<()> {
    output.write_all(&protocol::encode(answer)?)?;
    output.flush()
}
