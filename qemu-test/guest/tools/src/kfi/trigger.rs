// SPDX-License-Identifier: GPL-2.0

//! `kfi trigger`

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use kfi::{
    bits, AddressVector, Buffer, Caps, CompletionQueue, Counter, Endpoint, Error, Form, KfiErrno,
    Kind, OpType, Operation, Work,
};
use serde::Serialize;

use crate::output::{print_json, During, Problem};
use crate::setup::{insert, Choice, Place};

/// Try triggered operations by hand
///
/// Opens two endpoints and a counter. For each THRESHOLD one of the endpoints
/// posts a send that is to start when the counter has reached it: a triggered
/// operation. Then adds to the counter, step by step, and prints what has arrived
/// at the other endpoint after each step, in the order of arrival.
///
/// Operations start in the order of their thresholds, and those with the same
/// threshold in the order in which they were posted.
///
/// Exit status: 0 if everything has started when it should, in that order.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
        kfi trigger\n  \
        kfi trigger 10 20 10 30 --add 15,15\n  \
        kfi trigger 3 2 1 --add 3 --deferred")]
pub(crate) struct Arguments {
    /// At what the sends are to start
    #[arg(value_name = "THRESHOLD", default_values_t = [3, 1, 5, 1])]
    thresholds: Vec<u64>,

    /// Added to the counter, one after the other; else 1 again and again until all have started
    #[arg(short, long, value_name = "N", value_delimiter = ',')]
    add: Vec<u64>,

    /// Queue the sends as deferred work (KFI_QUEUE_WORK), instead of posting them with KFI_TRIGGER
    #[arg(long)]
    deferred: bool,

    #[command(flatten)]
    choice: Choice,

    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Bytes of a message: the number of its send.
const MESSAGE: usize = size_of::<u64>();
/// As many fit into the queues of an endpoint.
const MOST: usize = 256;
/// Messages that have not come after this time never will.
const PATIENCE: Duration = Duration::from_secs(10);

/// A send that has started.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
struct Sent {
    /// Counted from 1, in the order of posting.
    number: usize,
    threshold: u64,
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, threshold } = self;
        write!(f, "#{number} at {threshold}")
    }
}

/// The sends that started after one addition.
#[derive(Debug, Serialize)]
struct Step {
    /// None for those before the first addition.
    add: Option<u64>,
    counter: u64,
    started: Vec<Sent>,
    as_expected: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    deferred: bool,
    thresholds: Vec<u64>,
    steps: Vec<Step>,
    pending: usize,
    verified: bool,
}

/// Two endpoints, and what one has to send to the other.
struct Pair {
    outbox: Buffer,
    inbox: Buffer,
    sender: Endpoint,
    _receiver: Endpoint,
    trigger: Counter,
    arrived: Counter,
    arrivals: CompletionQueue,
    _sent: CompletionQueue,
    /// Of the receiver.
    addr: u64,
    _vector: AddressVector,
    place: Place,
}

impl Pair {
    /// Opens them, and posts a receive for each of the messages.
    fn new(choice: &Choice, messages: usize) -> Result<Self, Problem> {
        let place = choice.open(Caps::MSG | Caps::TRIGGER)?;
        let vector = place.address_vector()?;
        let sent = place.queue()?;
        let arrivals = place.queue()?;
        let arrived = place.counter()?;
        let open = || {
            let endpoint = place.endpoint()?;
            endpoint.bind(vector.handle(), 0).during("kfi_ep_bind")?;
            Ok::<_, Problem>(endpoint)
        };
        let both = bits::TRANSMIT | bits::RECV;
        let sender = open()?;
        let receiver = open()?;
        for (endpoint, queue) in [(&sender, &sent), (&receiver, &arrivals)] {
            endpoint.bind(queue.handle(), both).during("kfi_ep_bind")?;
        }
        let counted = receiver.bind(arrived.handle(), bits::RECV);
        counted.during("kfi_ep_bind")?;
        for endpoint in [&sender, &receiver] {
            endpoint.enable().during("kfi_enable")?;
        }
        let addr = insert(&vector, [&receiver].into_iter())?[0];

        let size = (messages * MESSAGE) as u64;
        let outbox = place.buffer(size)?;
        let inbox = place.buffer(size)?;
        for slot in 0..messages {
            let number = slot as u64 + 1;
            outbox.write(slot * MESSAGE, &number.to_ne_bytes());
            let receive = Operation::new(Kind::RECV, Form::MSG)
                .segment(inbox.segment(piece(slot)))
                .flags(bits::COMPLETION)
                .context(slot as u64);
            receiver.post(&receive).during("kfi_recvmsg")?;
        }
        Ok(Self {
            outbox,
            inbox,
            sender,
            _receiver: receiver,
            trigger: place.counter()?,
            arrived,
            arrivals,
            _sent: sent,
            addr,
            _vector: vector,
            place,
        })
    }

    /// Posts, or queues, a send.
    fn send(&self, slot: usize, threshold: u64, deferred: bool) -> Result<(), Problem> {
        let send = Operation::new(Kind::SEND, Form::MSG)
            .segment(self.outbox.segment(piece(slot)))
            .to(self.addr)
            .context(slot as u64 + 1);
        if deferred {
            let ep = self.sender.handle();
            let work = Work::transfer(OpType::SEND, ep, &send, &self.trigger, threshold);
            let queued = self.place.domain.queue_work(&work);
            queued.map(drop).during("KFI_QUEUE_WORK")
        } else {
            let send = send
                .flags(bits::TRIGGER | bits::COMPLETION)
                .trigger(&self.trigger, threshold);
            self.sender.post(&send).during("kfi_sendmsg")
        }
    }

    /// Waits until as many messages have come, and returns what has come since
    /// last time; it may be fewer or more.
    fn arrived(&self, all: usize) -> Result<Vec<usize>, Problem> {
        // Too few is what is to be told, not an error.
        let _ = self.arrived.wait(all as u64, Some(PATIENCE));
        let mut numbers = Vec::new();
        loop {
            let completions = match self.arrivals.read(16) {
                Ok(completions) => completions,
                Err(Error::Fabric(KfiErrno::EAGAIN)) => break,
                Err(error) => return Err(Problem::Call("kfi_cq_read", error)),
            };
            for completion in completions {
                let mut bytes = [0; MESSAGE];
                let slot = completion.op_context as usize;
                self.inbox.read(slot * MESSAGE, &mut bytes);
                numbers.push(u64::from_ne_bytes(bytes) as usize);
            }
        }
        Ok(numbers)
    }
}

/// Where a message lies.
fn piece(slot: usize) -> std::ops::Range<u64> {
    let start = (slot * MESSAGE) as u64;
    start..start + MESSAGE as u64
}

/// The sends that start while the counter goes from one value to another, in order.
fn due(thresholds: &[u64], started: &[Sent], value: u64) -> Vec<Sent> {
    let sends = thresholds.iter().enumerate().map(|(slot, threshold)| Sent {
        number: slot + 1,
        threshold: *threshold,
    });
    let mut due: Vec<_> = sends
        .filter(|send| send.threshold <= value && !started.contains(send))
        .collect();
    // Stable: the order of posting decides among equals.
    due.sort_by_key(|send| send.threshold);
    due
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Problem> {
    let Arguments {
        thresholds,
        deferred,
        ..
    } = arguments;
    if thresholds.len() > MOST {
        return Err(Problem::Wrong(format!("at most {MOST} sends")));
    }
    let pair = Pair::new(&arguments.choice, thresholds.len())?;
    for (slot, threshold) in thresholds.iter().enumerate() {
        pair.send(slot, *threshold, *deferred)?;
    }

    let mut additions = arguments.add.clone();
    if additions.is_empty() {
        let last = thresholds.iter().max().copied().unwrap_or(0);
        additions = vec![1; usize::try_from(last).unwrap_or(MOST).min(MOST)];
    }
    let mut steps = Vec::new();
    let mut started: Vec<Sent> = Vec::new();
    for add in std::iter::once(None).chain(additions.into_iter().map(Some)) {
        if let Some(add) = add {
            pair.trigger.add(add).during("kfi_cntr_add")?;
        }
        let counter = pair.trigger.read().during("kfi_cntr_read")?;
        let expected = due(thresholds, &started, counter);
        let numbers = pair.arrived(started.len() + expected.len())?;
        let now: Vec<_> = numbers
            .into_iter()
            .map(|number| Sent {
                number,
                threshold: thresholds.get(number.wrapping_sub(1)).copied().unwrap_or(0),
            })
            .collect();
        started.extend(&now);
        steps.push(Step {
            add,
            counter,
            as_expected: now == expected,
            started: now,
        });
    }
    let report = Report {
        deferred: *deferred,
        thresholds: thresholds.clone(),
        pending: thresholds.len().saturating_sub(started.len()),
        verified: steps.iter().all(|step| step.as_expected),
        steps,
    };
    if arguments.json {
        print_json(&report)?;
    } else {
        print(&report)?;
    }
    Ok(if report.verified {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn list(sent: impl Iterator<Item = Sent>) -> String {
    let all: Vec<_> = sent.map(|sent| sent.to_string()).collect();
    all.join(", ")
}

fn print(report: &Report) -> Result<(), Problem> {
    let mut out = io::stdout().lock();
    let how = if report.deferred { "queued" } else { "posted" };
    let all = report.thresholds.iter().enumerate();
    let all = all.map(|(slot, threshold)| Sent {
        number: slot + 1,
        threshold: *threshold,
    });
    writeln!(out, "{how}: {}\n", list(all))?;
    writeln!(out, "   add  counter  has started")?;
    for step in &report.steps {
        let add = step.add.map_or_else(String::new, |add| format!("+{add}"));
        let counter = step.counter;
        let started = if step.started.is_empty() {
            "-".to_owned()
        } else {
            list(step.started.iter().copied())
        };
        let note = if step.as_expected {
            ""
        } else {
            "   <- not as it should be"
        };
        writeln!(out, "{add:>6}  {counter:>7}  {started}{note}")?;
    }
    if report.pending > 0 {
        writeln!(out, "\n{} still wait", report.pending)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(due: &[Sent]) -> Vec<usize> {
        due.iter().map(|send| send.number).collect()
    }

    #[test]
    fn order() {
        let thresholds = [3, 1, 5, 1, 0];
        let mut started = due(&thresholds, &[], 0);
        assert_eq!(numbers(&started), [5]);
        let next = due(&thresholds, &started, 4);
        assert_eq!(numbers(&next), [2, 4, 1]);
        started.extend(next);
        assert!(due(&thresholds, &started, 4).is_empty());
        assert_eq!(numbers(&due(&thresholds, &started, 9)), [3]);
    }
}
