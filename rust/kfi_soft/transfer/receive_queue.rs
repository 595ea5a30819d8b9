// SPDX-License-Identifier: GPL-2.0

//! Posted receives and messages that have arrived.
//!
//! A message here is whatever is matched with a posted receive, RMA to tagged receives too. How they
//! find each other: [`MatchLists`]. A pair that is found is taken out under the lock and carried
//! out after it. A message that no receive wants yet waits here, with the sender's memory still in
//! use, until one wants it or the sender's time is over.
//!
//! As long as no message waits a receive is posted without the lock, into an [`Inbox`]. Whoever is about to use
//! the lists of its kind shuts that, adds to the lists what has come, and opens it again at last, if no message
//! waits then ([`Locked`]).
//!
//! Queues are walked in steps, between which the lock is released: how long interrupts are disabled
//! does not depend on how much is queued. An entry to be cancelled or given up is found by its name,
//! without a walk. Callers that look for a message by its tag (`KFI_PEEK`) walk some steps, and leave the
//! rest to the work queue.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        new_mutex,
        new_spinlock_irq,
        Arc,
        Mutex,
        SpinLockIrq,
        SpinLockIrqGuard, //
    },
    time::{
        msecs_to_jiffies,
        Jiffies, //
    }, //
};

use crate::{
    address::native::Address,
    budget::Budget,
    counter::Counter,
    domain::Domain,
    kfi::{
        addr::FabricAddr,
        context::Context,
        errno::EOPBADSTATE,
        flags::{
            CompletionFlags,
            OpFlags, //
        },
        hold::Hold,
        linux::{
            interrupts::NoPreemption,
            queue::{
                Entry,
                EntryQueue,
                FoundEntry,
                Inbox,
                Keyed,
                Named,
                Step,
                WalkableQueue, //
            },
            task::cond_resched,
            timeout::jiffies,
            work_queue::{
                new_work,
                Work,
                WorkItem, //
            }, //
        },
        memory::{
            self,
            Cursor, //
        },
        provider::{
            Failure,
            Incoming,
            Outcome, //
        }, //
    },
    late_work::LateWork,
    limits,
    module_parameters,
    queue::completion_queue::EntryPlace,
    transfer::{
        completer::{
            Completer,
            CompletionSpec,
            Manner,
            MemoryUse, //
        },
        inbound::Inbound,
        matching::{
            Expiring,
            MatchLists,
            Settled, //
        },
        multi_buffer::MultiUse,
        origin::Origin,
        receiver::{
            Receiver,
            ReceiverUse, //
        }, //
    },
    wire::{
        awaits::Awaits,
        Initiator,
        Request,
        RequestKind,
        Response, //
    }, //
};

/// A posted receive.
pub(crate) struct Posted {
    /// Where messages go.
    pub(crate) buffer: ReceiveBuffer,
    /// The tag and the bits that need not match, if it is for tagged messages.
    pub(crate) tag: Option<(u64, u64)>,
    /// The only sender that it accepts messages from, if there is one.
    pub(crate) source: Option<Address>,
    /// The context that completions report.
    pub(crate) context: Context,
    /// The flags of the operation.
    pub(crate) flags: OpFlags,
    /// It is deferred work.
    pub(crate) deferred: bool,
    /// Since when it is to be compared with what waits, in jiffies; 0 if it was not posted.
    pub(crate) since: Jiffies,
    /// The completion counter of deferred work, unless the buffer for several messages has it.
    pub(crate) notify: Option<Hold<Counter>>,
    /// The receive context that it only asks for what has arrived (`KFI_PEEK`), if it was not answered
    /// at once.
    pub(crate) asks: Option<Arc<Receiver>>,
}

/// The memory of a posted receive.
pub(crate) enum ReceiveBuffer {
    /// For one message.
    One(Incoming),
    /// For several, with the place of the next one.
    Multi(MultiUse, usize),
}

/// The place of a message in the memory of a posted receive.
pub(crate) struct Delivery {
    target: Target,
    /// Bytes that there is room for.
    room: usize,
    manner: Manner,
}

/// The memory that a delivery goes to.
enum Target {
    /// All of it.
    Whole(Incoming),
    /// A part, from a place on.
    Part(MultiUse, usize),
}

/// Which bytes of a delivery a request is for.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    /// Where they begin.
    pub(crate) offset: usize,
    /// How many there are.
    pub(crate) len: usize,
    /// The request is for more.
    pub(crate) cut_off: bool,
}

impl Delivery {
    /// Returns which bytes a request is for.
    pub(crate) fn span(&self, request: &Request) -> Span {
        let offset = match request.kind {
            RequestKind::TaggedRead { offset, .. } | RequestKind::TaggedWrite { offset, .. } => {
                usize::try_from(offset).unwrap_or(usize::MAX)
            }
            _ => 0,
        };
        Span {
            offset,
            len: request.len.min(self.room.saturating_sub(offset)),
            cut_off: offset
                .checked_add(request.len)
                .is_none_or(|end| end > self.room),
        }
    }

    /// Returns the place in the memory.
    pub(crate) fn cursor(&self, offset: usize) -> Cursor<'_, memory::Target> {
        match &self.target {
            Target::Whole(memory) => memory.cursor(offset),
            Target::Part(buffer, at) => buffer.cursor(at.saturating_add(offset)),
        }
    }

    /// Returns the address, for completions, of a part of a buffer for several messages; else 0.
    pub(crate) fn part_address(&self) -> usize {
        match &self.target {
            Target::Whole(_) => 0,
            Target::Part(buffer, at) => match buffer.address() {
                0 => 0,
                start => start.wrapping_add(*at),
            },
        }
    }

    /// Ends the use of the memory. Returns what the completion has to do.
    pub(crate) fn finish(self) -> CompletionSpec {
        CompletionSpec {
            of: match self.target {
                Target::Whole(memory) => MemoryUse::Ended(memory.end()),
                Target::Part(part, _) => MemoryUse::Part(part),
            },
            manner: self.manner,
        }
    }
}

/// Named by the context.
impl Named for Posted {
    type Name = usize;

    fn name(&self) -> Self::Name {
        self.context.as_number()
    }
}

/// By the tag, if it is for one alone.
impl Keyed for Posted {
    fn key(&self) -> Option<u64> {
        match self.tag {
            Some((tag, 0)) => Some(tag),
            _ => None,
        }
    }
}

impl Posted {
    /// Returns whether it wants what `request` brings.
    pub(crate) fn wants(&self, request: &Request) -> bool {
        let tag = match (self.tag, request.kind.tag()) {
            (None, None) => true,
            (Some((tag, ignore)), Some(other)) => (tag ^ other) & !ignore == 0,
            _ => false,
        };
        tag && self.source.is_none_or(|source| source == request.source)
    }

    /// Returns whether what it wants may land in it: a region is for one operation, and a buffer for
    /// several messages is none.
    pub(crate) fn may_take(&self, request: &Request) -> bool {
        matches!(self.buffer, ReceiveBuffer::One(_)) || !is_tagged_rma(request)
    }

    /// Returns how the completion of a message for `receiver` is reported.
    fn manner(&self, receiver: &Receiver) -> Manner {
        Manner {
            entry: if self.deferred {
                self.flags.contains(OpFlags::COMPLETION)
            } else {
                receiver.completer().wants_entry(self.flags)
            },
            counted: self.is_counted(),
            notify: None,
            memory: None,
        }
    }

    /// Returns whether the counters of the endpoint count it.
    fn is_counted(&self) -> bool {
        // To look is not to receive.
        self.asks.is_none() && (!self.deferred || self.flags.contains(OpFlags::COMPLETION))
    }

    /// Sets the completion counter of deferred work.
    pub(crate) fn set_notify(&mut self, notify: Option<Hold<Counter>>) {
        match &self.buffer {
            ReceiveBuffer::One(_) => self.notify = notify,
            ReceiveBuffer::Multi(buffer, _) => buffer.set_notify(notify),
        }
    }

    /// Gives it up without a completion.
    pub(crate) fn give_up(self) {
        let notify = match self.buffer {
            ReceiveBuffer::One(_) => self.notify,
            ReceiveBuffer::Multi(buffer, _) => buffer.leave().1.notify,
        };
        if let Some(notify) = &notify {
            notify.release();
        }
    }
}

/// Ends a posted receive without a message. Returns what its completion has to do, which is
/// reported by an entry.
pub(crate) fn unused(posted: Entry<Posted>) -> CompletionSpec {
    let (mut posted, memory) = posted.empty();
    CompletionSpec {
        manner: Manner {
            entry: true,
            counted: posted.is_counted(),
            notify: posted.notify.take(),
            memory: Some(memory),
        },
        of: match posted.buffer {
            ReceiveBuffer::One(memory) => MemoryUse::Ended(memory.end()),
            ReceiveBuffer::Multi(buffer, _) => MemoryUse::Part(buffer),
        },
    }
}

/// Reports that a receive was cancelled. Returns whether it has ended; if not, messages are being
/// delivered to it, and complete, the last one with the release.
pub(crate) fn report_cancelled(completer: &Completer, posted: Entry<Posted>) -> bool {
    let kind = if posted.tag.is_some() {
        CompletionFlags::TAGGED
    } else {
        CompletionFlags::MSG
    };
    let tag = posted.tag.map_or(0, |(tag, _)| tag);
    let outcome = Outcome {
        flags: (kind | CompletionFlags::RECV).as_raw(),
        len: 0,
        buf: Context::NONE,
        data: 0,
        tag,
        src_addr: FabricAddr::NOTAVAIL.as_raw(),
    };
    let failure = Failure {
        err: ECANCELED.to_errno().saturating_neg(),
        ..Failure::NONE
    };
    completer.end_unused(unused(posted), &outcome, failure)
}

/// How a message was matched, under the lock.
pub(crate) enum Match {
    /// With a receive that is used up.
    One(Entry<Posted>),
    /// With a part of a buffer, maybe its last one.
    Part(Delivery, Option<Entry<Posted>>),
}

impl Match {
    /// Makes a delivery of it, without the lock. It has memory for its completion if a receive was
    /// used up.
    pub(crate) fn into_delivery(self, receiver: &Receiver) -> Delivery {
        match self {
            Self::Part(mut delivery, exhausted) => {
                if let Some(posted) = exhausted {
                    let (posted, memory) = posted.empty();
                    delivery.manner.memory = Some(memory);
                    // Not the last use: the delivery is one.
                    posted.give_up();
                }
                delivery
            }
            Self::One(posted) => {
                let (mut posted, entry) = posted.empty();
                let mut manner = posted.manner(receiver);
                manner.notify = posted.notify.take();
                manner.memory = Some(entry);
                let (room, target) = match posted.buffer {
                    ReceiveBuffer::One(memory) => (memory.len(), Target::Whole(memory)),
                    // Buffers for several messages are not used up at once.
                    ReceiveBuffer::Multi(buffer, at) => (0, Target::Part(buffer, at)),
                };
                Delivery {
                    room,
                    manner,
                    target,
                }
            }
        }
    }
}

/// Why a message and a receive that wants it do not come together.
#[derive(PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// The message has no memory for its completion, and there is no room in the ring.
    NoRoom,
    /// The message is for one operation on memory, and the receive is a buffer for several messages.
    NoRegion,
    /// The sender has given the message up.
    Gone,
}

/// Takes a posted receive for a message that it wants, or the part of it that the message needs.
///
/// `claim` says whether the sender still wants it, and whether there is room for its completion if
/// that does not lie in the memory of the receive.
pub(crate) fn pair<const WALKS: usize>(
    mut found: FoundEntry<'_, Posted, WALKS>,
    request: &Request,
    receiver: &Receiver,
    claim: impl FnOnce(bool) -> core::result::Result<(), Mismatch>,
) -> core::result::Result<Match, Mismatch> {
    if !found.may_take(request) {
        return Err(Mismatch::NoRegion);
    }
    match &found.buffer {
        ReceiveBuffer::One(_) => {
            claim(false)?;
            Ok(Match::One(found.take()))
        }
        ReceiveBuffer::Multi(buffer, next) => {
            let at = *next;
            let (room, exhausted) = buffer.part(at, request.len);
            claim(!exhausted)?;
            let buffer = buffer.enter();
            let delivery = Delivery {
                room,
                manner: found.manner(receiver),
                target: Target::Part(buffer, at),
            };
            if let ReceiveBuffer::Multi(_, next) = &mut found.buffer {
                *next = at.saturating_add(request.len);
            }
            Ok(Match::Part(delivery, exhausted.then(|| found.take())))
        }
    }
}

/// Returns whether a request uses a tagged receive as a memory region.
fn is_tagged_rma(request: &Request) -> bool {
    matches!(
        request.kind,
        RequestKind::TaggedWrite { .. } | RequestKind::TaggedRead { .. }
    )
}

/// Returns how long messages wait for a receive, in milliseconds.
fn rnr_millis() -> u32 {
    *module_parameters::rnr_timeout.value_ref()
}

/// Returns how long messages wait for a receive.
fn rnr_timeout() -> Jiffies {
    msecs_to_jiffies(rnr_millis())
}

/// Returns for how long messages that lie in no order of their times are not looked at again: all of them
/// are, so what comes meanwhile is looked at together, however little is left of its time.
fn batch() -> Jiffies {
    msecs_to_jiffies(10)
}

/// Returns how many milliseconds so many jiffies are.
fn jiffies_to_millis(jiffies: Jiffies) -> u32 {
    let millis = jiffies.saturating_mul(1000);
    let millis = millis.checked_div(msecs_to_jiffies(1000)).unwrap_or(0);
    u32::try_from(millis).unwrap_or(u32::MAX)
}

/// Entries that are looked at before others get the lock.
pub(super) const STEP: usize = 64;

/// Rounds of comparisons in the work queue, before it looks at others.
const ROUNDS: usize = 64;

/// Messages that expire before others get the lock.
const EXPIRED: usize = 16;

/// The part of a receive queue that its lock protects.
struct State {
    closed: bool,
    /// Messages without tags.
    plain: MatchLists,
    /// Messages with tags.
    tagged: MatchLists,
    /// Messages that were set aside for a context.
    aside: WalkableQueue<Inbound>,
    /// Receives that ask for messages with tags, whose answers are up to the work queue.
    looking: EntryQueue<Posted>,
    /// When the work queue looks at what waits, in jiffies.
    watch_at: Option<Jiffies>,
}

/// So many receives are posted without the lock before one takes it, and adds them to the lists.
const INBOX: usize = 16;

/// The lock of a receive queue.
struct Locked<'a> {
    state: SpinLockIrqGuard<'a, State>,
    queue: &'a ReceiveQueue,
    /// The inboxes, without tags and with tags, that were shut.
    shut: [bool; 2],
}

impl Locked<'_> {
    /// Returns the lists of one kind, with all receives of it that were posted.
    fn lists(&mut self, tagged: bool) -> &mut MatchLists {
        let lists = if tagged {
            &mut self.state.tagged
        } else {
            &mut self.state.plain
        };
        if let Some(shut) = self
            .shut
            .get_mut(usize::from(tagged))
            .filter(|shut| !**shut)
        {
            *shut = true;
            lists.add_receives(self.queue.inbox(tagged).shut());
        }
        lists
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        if self.state.closed {
            return;
        }
        for (shut, tagged) in self.shut.into_iter().zip([false, true]) {
            let lists = if tagged {
                &self.state.tagged
            } else {
                &self.state.plain
            };
            if shut {
                let room = lists.room(self.queue.size).min(INBOX);
                self.queue.inbox(tagged).open(room);
            }
        }
    }
}

impl core::ops::Deref for Locked<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl core::ops::DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

/// The receives posted to one or, if they share it, several endpoints.
#[pin_data]
pub(crate) struct ReceiveQueue {
    #[pin]
    state: SpinLockIrq<State>,
    /// Receives without and with tags that were posted without the lock.
    plain_inbox: Inbox<Posted>,
    tagged_inbox: Inbox<Posted>,
    /// Held by the thread that takes out messages of a receive context that is being closed: such a walk is kept
    /// for long, as the thread may be preempted, and a queue has places for few.
    #[pin]
    purging: Mutex<()>,
    /// How many receives may be posted.
    size: usize,
    late_work: Arc<LateWork>,
    #[pin]
    watch: Work<ReceiveQueue>,
}

/// The result of a look at the unexpected messages.
pub(crate) enum Looked {
    /// One was found.
    Found(Request),
    /// There is none.
    Nothing,
    /// There are more to be looked at.
    Unfinished,
}

/// The result of the arrival of a message.
pub(crate) enum Arrival<'a> {
    /// It is delivered.
    Delivery(Delivery, EntryPlace<'a>),
    /// It has to wait.
    NotReady,
    /// It is refused.
    Refused(Error),
}

impl ReceiveQueue {
    /// A queue for `size` receives in a domain.
    pub(crate) fn new(domain: &Domain, size: usize) -> Result<Arc<Self>> {
        let late_work = domain.late_work()?;
        Arc::pin_init(
            pin_init!(Self {
                state <- new_spinlock_irq!(
                    State {
                        closed: false,
                        plain: MatchLists::new(),
                        tagged: MatchLists::new(),
                        aside: WalkableQueue::walkable(),
                        looking: EntryQueue::new(),
                        watch_at: None,
                    },
                    "kfi_soft::ReceiveQueue::state"
                ),
                plain_inbox: Inbox::new(),
                tagged_inbox: Inbox::new(),
                purging <- new_mutex!((), "kfi_soft::ReceiveQueue::purging"),
                size,
                late_work,
                watch <- new_work!("kfi_soft::ReceiveQueue::watch"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns where receives of one kind are posted without the lock.
    #[inline]
    fn inbox(&self, tagged: bool) -> &Inbox<Posted> {
        if tagged {
            &self.tagged_inbox
        } else {
            &self.plain_inbox
        }
    }

    /// Takes the lock.
    #[inline]
    fn lock(&self) -> Locked<'_> {
        Locked {
            state: self.state.lock(),
            queue: self,
            shut: [false; 2],
        }
    }

    /// Finds a receive for a message that is to be delivered at once. It is delivered to a part of
    /// a buffer only if there is room for its completion in the ring.
    pub(crate) fn arrive<'a>(
        self: &Arc<Self>,
        receiver: &'a Receiver,
        request: &Request,
    ) -> Arrival<'a> {
        let tagged = request.kind.tag().is_some();
        let mut place = EntryPlace::Nowhere;
        // As in `accept`.
        let _preemption = NoPreemption::begin();
        let mut state = self.lock();
        let lists = state.lists(tagged);
        // Nothing overtakes what waits for room.
        let ready = !receiver.is_stalling();
        let found = ready.then(|| lists.find_receive(request, STEP)).flatten();
        let Some(found) = found else {
            return Arrival::NotReady;
        };
        let matched = pair(found, request, receiver, |needs_room| {
            if needs_room {
                place = receiver.completer().slot().ok_or(Mismatch::NoRoom)?;
            }
            Ok(())
        });
        let go_on = lists.begin_refill();
        drop(state);
        if go_on {
            self.hand_over(tagged);
        }
        match matched {
            Ok(matched) => Arrival::Delivery(matched.into_delivery(receiver), place),
            Err(Mismatch::NoRegion) => Arrival::Refused(EACCES),
            Err(_) => Arrival::NotReady,
        }
    }

    /// Takes a message: it is delivered, or kept until a receive wants it.
    pub(crate) fn accept(
        self: &Arc<Self>,
        receiver: &ReceiverUse,
        mut message: Entry<Inbound>,
        budget: &mut Budget,
    ) {
        let tagged = message.request().kind.tag().is_some();
        // One that has waited for longer is not given more time for that, nor less.
        let waited = msecs_to_jiffies(message.origin.waited().min(rnr_millis()));
        // Others may leave to this thread what they bring, once it has the lock.
        let preemption = NoPreemption::begin();
        {
            let mut state = self.lock();
            if receiver.is_closed() {
                drop(state);
                drop(preemption);
                message.origin.refuse(EHOSTUNREACH, budget);
                return;
            }
            if !message.origin.is_waiting() {
                // Given up meanwhile, by a thread that has not found it here.
                drop(state);
                drop(preemption);
                return;
            }
            let now = jiffies();
            message.since = now.wrapping_sub(waited);
            let lists = state.lists(tagged);
            if waited != 0 {
                lists.note_unordered(now.wrapping_add(rnr_timeout()));
            }
            if !lists.add_message(message) {
                drop(state);
                self.watch_over(waited);
                return;
            }
        }
        self.compare(tagged, budget);
        self.watch_over(waited);
    }

    /// A message has come that has waited for so long.
    fn watch_over(self: &Arc<Self>, waited: Jiffies) {
        if waited != 0 {
            let left = rnr_timeout().saturating_sub(waited);
            self.watch_after(left.max(batch()));
        }
    }

    /// Compares messages and receives, after [`MatchLists`] has said that the caller is to do so.
    ///
    /// The caller is not preempted, as others leave to it what they bring; so it does not do much.
    fn compare(self: &Arc<Self>, tagged: bool, budget: &mut Budget) {
        let _preemption = NoPreemption::begin();
        while self.compare_some(tagged, budget) {
            if budget.is_spent() {
                self.hand_over(tagged);
                return;
            }
        }
    }

    /// Makes some comparisons, and delivers what has been matched; returns whether there are more
    /// to make, which is up to the caller then.
    fn compare_some(self: &Arc<Self>, tagged: bool, budget: &mut Budget) -> bool {
        let mut settled = Settled::new();
        let step = STEP.min(budget.comparisons());
        let mut limit = step;
        let more = self
            .lock()
            .lists(tagged)
            .compare(self.size, &mut limit, budget, &mut settled);
        let made = step.saturating_sub(limit);
        budget.spend_comparisons(made, settled.len(), settled.bytes());
        let kept = settled.kept();
        budget.in_comparison(|budget| settled.settle(budget));
        if kept {
            self.watch_after(rnr_timeout());
        }
        more
    }

    /// Lets messages for a receive context be received that have waited for room.
    pub(crate) fn resume(self: &Arc<Self>, receiver: &Receiver) {
        // As in `accept`.
        let _preemption = NoPreemption::begin();
        let (compare, looking) = {
            let mut state = self.lock();
            if !receiver.end_stalling() {
                return;
            }
            let compare = [false, true].map(|tagged| state.lists(tagged).begin_again());
            (compare, !state.looking.is_empty())
        };
        if looking {
            // They have waited for this.
            self.watch_after(0);
        }
        for (tagged, compare) in [false, true].into_iter().zip(compare) {
            if compare {
                self.hand_over(tagged);
            }
        }
    }

    /// Leaves the comparisons of one kind to the work queue.
    fn hand_over(self: &Arc<Self>, tagged: bool) {
        self.lock().lists(tagged).hand_over();
        self.watch_after(0);
    }

    /// Looks at the messages that wait, after a delay or earlier.
    fn watch_after(self: &Arc<Self>, delay: Jiffies) {
        let mut state = self.lock();
        let at = jiffies().wrapping_add(delay);
        // Jiffies wrap.
        let is_earlier = |other: Jiffies| at.wrapping_sub(other).cast_signed() < 0;
        if state.closed || state.watch_at.is_some_and(|other| !is_earlier(other)) {
            return;
        }
        state.watch_at = Some(at);
        // With the lock held: else a later time could replace an earlier one that was set meanwhile.
        self.late_work
            .queue()
            .modify_delayed::<_, 0>(self.clone(), delay);
    }

    /// Posts a receive, and delivers to it what has waited; `EAGAIN` if there are as many posted
    /// as there may be.
    pub(crate) fn post(self: &Arc<Self>, posted: Entry<Posted>) -> Result {
        let tagged = posted.tag.is_some();
        let posted = match self.inbox(tagged).push(posted) {
            Ok(()) => return Ok(()),
            Err(posted) => posted,
        };
        // As in `accept`.
        let _preemption = NoPreemption::begin();
        let mut state = self.lock();
        let closed = state.closed;
        let lists = state.lists(tagged);
        if closed || lists.is_full(self.size) {
            drop(state);
            posted.into_inner().give_up();
            return Err(if closed { EOPBADSTATE.into() } else { EAGAIN });
        }
        let compare = lists.add_receive(posted);
        drop(state);
        if compare {
            self.compare(tagged, &mut Budget::of_caller());
        }
        Ok(())
    }

    /// Returns whether so many have fired and wait for room that no more are to be submitted.
    pub(crate) fn is_backed_up(&self) -> bool {
        let state = self.lock();
        let fired = [&state.plain, &state.tagged].map(MatchLists::fired);
        fired.into_iter().fold(0, usize::saturating_add) >= limits::MAX_FIRED
    }

    /// Posts a receive that was prepared when it was submitted, now or as soon as there is room.
    /// Given up if the queue is closed.
    ///
    /// `begun` is called once, with the lock held that makes it to be found here: if it says so, the
    /// receive is given back, to be cancelled instead.
    pub(crate) fn post_fired(
        self: &Arc<Self>,
        posted: Entry<Posted>,
        begun: &dyn Fn() -> bool,
    ) -> Option<Entry<Posted>> {
        let tagged = posted.tag.is_some();
        // As in `accept`.
        let _preemption = NoPreemption::begin();
        let mut state = self.lock();
        let cancelled = begun();
        if state.closed {
            drop(state);
            posted.into_inner().give_up();
            return None;
        }
        if cancelled {
            return Some(posted);
        }
        let compare = state.lists(tagged).add_fired(posted, self.size);
        drop(state);
        if compare {
            self.compare(tagged, &mut Budget::due());
        }
        None
    }

    /// Takes out a receive with a context.
    pub(crate) fn take(self: &Arc<Self>, context: Context) -> Option<Entry<Posted>> {
        let number = context.as_number();
        self.take_named(number, |posted| posted.context.as_number() == number)
    }

    /// Takes out the first receive whose name is not less than `name`, if it is `same`.
    fn take_named(
        self: &Arc<Self>,
        name: <Posted as Named>::Name,
        same: impl Fn(&Posted) -> bool,
    ) -> Option<Entry<Posted>> {
        // As in `accept`.
        let _preemption = NoPreemption::begin();
        let (posted, refill) = {
            let mut state = self.lock();
            if let Some(posted) = state.looking.take_named(&name, &same) {
                return Some(posted);
            }
            [false, true].into_iter().find_map(|tagged| {
                let lists = state.lists(tagged);
                let posted = lists.take_receive(&name, &same)?;
                // There is room for another one.
                Some((posted, lists.begin_refill().then_some(tagged)))
            })?
        };
        if let Some(tagged) = refill {
            self.hand_over(tagged);
        }
        Some(posted)
    }

    /// Looks for a tagged message that waits (`KFI_PEEK`), at up to as many as `limit` says, which is
    /// lowered accordingly; `relax` is called when others had the lock.
    ///
    /// A message that is found stays, or is set aside for the context of `wanted`, or dropped.
    /// Messages that are yet to be compared may be wanted by a posted receive, and are not looked at.
    pub(crate) fn look(
        self: &Arc<Self>,
        wanted: &Posted,
        limit: &mut usize,
        relax: impl Fn(),
    ) -> Looked {
        let claim = wanted.flags.contains(OpFlags::CLAIM);
        let discard = wanted.flags.contains(OpFlags::DISCARD);
        // A message that its sender is just giving up is not there any more, and one that has
        // stalled is another receive's.
        let same = |message: &Inbound| {
            let request = message.request();
            let there = message.origin.is_waiting() && !message.is_stalled();
            there && !is_tagged_rma(request) && wanted.wants(request)
        };
        let mut walk = None;
        loop {
            let mut step = STEP.min(*limit);
            *limit = limit.saturating_sub(step);
            let mut state = self.lock();
            let unexpected = state.tagged.unexpected();
            let found = match unexpected.step(&mut walk, &mut step, same) {
                Step::More if *limit != 0 => {
                    drop(state);
                    relax();
                    continue;
                }
                Step::More => Err(Looked::Unfinished),
                Step::End => Err(Looked::Nothing),
                Step::Found(found) => {
                    let request = *found.request();
                    Ok((request, (claim || discard).then(|| found.take())))
                }
            };
            if let Some(walk) = walk.take() {
                unexpected.end_walk(walk);
            }
            drop(state);
            let (request, message) = match found {
                Ok((request, Some(message))) => (request, message),
                Ok((request, None)) => return Looked::Found(request),
                Err(looked) => return looked,
            };
            let taken = if discard {
                // The message has been received, if only to be thrown away.
                let origin = message.into_inner().origin;
                let claimed = origin.claim();
                if claimed {
                    let response = Response::done(request.len);
                    origin.respond(response, &mut Budget::of_caller());
                }
                claimed
            } else {
                self.set_aside(message, wanted.context)
            };
            if taken {
                return Looked::Found(request);
            }
        }
    }

    /// Looks for a tagged message, as far as the caller may; leaves the rest to the work queue, which
    /// answers then. Returns the receive if it is answered now, with what was found; `EAGAIN` if too
    /// many are to be answered by the work queue.
    pub(crate) fn peek(
        self: &Arc<Self>,
        receiver: &Arc<Receiver>,
        mut wanted: Entry<Posted>,
    ) -> Result<Option<(Entry<Posted>, Option<Request>)>> {
        // Receives that were posted before may want what waits, and are yet to be compared with it.
        // Messages that have stalled at this one may not be wanted any more, which is found out
        // when they go on.
        let too_early = self.lock().tagged.has_new() || receiver.is_stalling();
        let looked = if too_early {
            Looked::Unfinished
        } else {
            // A walk is not kept for long, as a queue has places for few.
            let _preemption = NoPreemption::begin();
            let mut limit = Budget::of_caller().comparisons();
            self.look(&wanted, &mut limit, || ())
        };
        match looked {
            Looked::Found(request) => return Ok(Some((wanted, Some(request)))),
            Looked::Nothing => return Ok(Some((wanted, None))),
            Looked::Unfinished => {}
        }
        wanted.asks = Some(receiver.clone());
        {
            let mut state = self.lock();
            let closed = state.closed;
            if closed || state.looking.len() >= self.size {
                drop(state);
                wanted.into_inner().give_up();
                return Err(if closed { EOPBADSTATE.into() } else { EAGAIN });
            }
            state.looking.push_named(wanted);
        }
        self.watch_after(0);
        Ok(None)
    }

    /// Answers receives that ask for messages, as many as there are now.
    fn answer(self: &Arc<Self>) {
        let count = self.lock().looking.len();
        for _ in 0..count {
            let wanted = {
                let mut state = self.lock();
                let asks = state
                    .looking
                    .front()
                    .and_then(|wanted| wanted.asks.as_ref());
                let stalling = asks.is_some_and(|receiver| receiver.is_stalling());
                // As in `peek`.
                if state.tagged.has_new() {
                    drop(state);
                    self.watch_after(1);
                    return;
                }
                if stalling {
                    // `resume` has it answered.
                    return;
                }
                state.looking.pop_front()
            };
            let Some(wanted) = wanted else {
                return;
            };
            let mut limit = usize::MAX;
            let found = match self.look(&wanted, &mut limit, cond_resched) {
                Looked::Found(request) => Some(request),
                _ => None,
            };
            if let Some(receiver) = wanted.asks.clone() {
                receiver.report_peeked(wanted, found);
            }
            cond_resched();
        }
    }

    /// Sets a message aside for a context; its time begins anew. `false` if its sender has given it up
    /// meanwhile and not found it, or its receiver is closed.
    fn set_aside(self: &Arc<Self>, mut message: Entry<Inbound>, context: Context) -> bool {
        let mut state = self.lock();
        if message.receiver.is_closed() || !message.origin.is_waiting() {
            drop(state);
            let budget = &mut Budget::of_caller();
            message.origin.refuse(EHOSTUNREACH, budget);
            return false;
        }
        message.since = jiffies();
        message.set_aside_for(context.as_number());
        state.aside.push_named(message);
        drop(state);
        self.watch_after(rnr_timeout());
        true
    }

    /// Takes the message that was set aside for a context.
    pub(crate) fn take_aside(&self, context: Context) -> Option<Entry<Inbound>> {
        let number = context.as_number();
        let mut state = self.lock();
        // All that are here have a context.
        state
            .aside
            .take_named(&(number, 0), |message| message.name().0 == number)
    }

    /// Takes out a message that its sender has given up, if it is here.
    pub(crate) fn withdraw(&self, origin: &Origin) -> Option<Entry<Inbound>> {
        let tagged = origin.request().kind.tag().is_some();
        let mut state = self.lock();
        if let Some(message) = state.lists(tagged).take_message(origin) {
            return Some(message);
        }
        state
            .aside
            .take_named(&Inbound::name_of(origin), |message| message.is_of(origin))
    }

    /// As [`Self::withdraw`], but not those that were set aside; returns what the message has waited for.
    pub(crate) fn take_back(&self, origin: &Origin) -> Option<Awaits> {
        let tagged = origin.request().kind.tag().is_some();
        let taken = self.lock().lists(tagged).take_compared(origin);
        let (message, compared) = taken?;
        if message.is_stalled() {
            return Some(Awaits::Room);
        }
        let waited = jiffies().wrapping_sub(message.since);
        Some(Awaits::Receive {
            millis: jiffies_to_millis(waited),
            compared,
            // Found by whoever comes first: if the flow goes on and is stopped again all the time, that
            // is never the watch.
            over: waited >= rnr_timeout(),
        })
    }

    /// Takes out all messages for a receive context that is being closed, and refuses them. May
    /// sleep.
    pub(crate) fn purge(self: &Arc<Self>, receiver: &Arc<Receiver>) {
        let same = |message: &Inbound| Arc::ptr_eq(&message.receiver, receiver);
        let purging = self.purging.lock();
        for tagged in [false, true] {
            for number in 0..=MatchLists::MESSAGES {
                let mut walk = None;
                loop {
                    let mut limit = STEP;
                    // Its sender waits for the thread that has taken it out.
                    let preemption = NoPreemption::begin();
                    let message = {
                        let mut state = self.lock();
                        let Some(queue) = state.messages(tagged, number) else {
                            break;
                        };
                        match queue.step(&mut walk, &mut limit, same) {
                            Step::Found(found) => Some(found.take()),
                            Step::More => None,
                            Step::End => {
                                if let Some(walk) = walk.take() {
                                    queue.end_walk(walk);
                                }
                                break;
                            }
                        }
                    };
                    if let Some(message) = message {
                        let budget = &mut Budget::thread();
                        message.origin.refuse(EHOSTUNREACH, budget);
                    }
                    drop(preemption);
                    cond_resched();
                }
            }
        }
        drop(purging);
        // All that has waited for room is gone.
        self.resume(receiver);
    }

    /// Gives up all receives; none can be posted any more. May sleep.
    pub(crate) fn close(self: &Arc<Self>) {
        let mut looking = {
            let mut state = self.lock();
            state.closed = true;
            core::mem::replace(&mut state.looking, EntryQueue::new())
        };
        while let Some(posted) = looking.pop_front() {
            posted.into_inner().give_up();
            cond_resched();
        }
        for tagged in [false, true] {
            for number in 0..MatchLists::RECEIVES {
                let given_up = {
                    let mut state = self.lock();
                    let queue = state.lists(tagged).receives(number);
                    queue.map(|queue| core::mem::replace(queue, WalkableQueue::walkable()))
                };
                let Some(mut given_up) = given_up else {
                    continue;
                };
                while let Some(posted) = given_up.pop_front() {
                    posted.into_inner().give_up();
                    cond_resched();
                }
            }
        }
        self.watch.cancel_sync();
    }

    /// Refuses messages whose time is over, and brings the time of the next look in line with the others. They
    /// lie in the order in which their time began, but for those that have waited for room, while which it
    /// does not run, and those that have waited before they arrived.
    fn expire(
        &self,
        messages: impl for<'a> Fn(&'a mut Locked<'_>, Jiffies) -> Expiring<'a>,
        next: &mut Next,
    ) {
        let timeout = rnr_timeout();
        let mut walk = None;
        loop {
            let mut settled = Settled::new();
            let mut limit = STEP;
            let more = {
                let mut state = self.lock();
                let Expiring {
                    messages: queue,
                    at,
                    unordered,
                } = messages(&mut state, jiffies());
                let more = loop {
                    let Some(at) = at else {
                        break false;
                    };
                    let left = |message: &Inbound| {
                        // Jiffies wrap.
                        let left = message.since.wrapping_add(timeout).wrapping_sub(at);
                        (left.cast_signed() > 0).then_some(left)
                    };
                    // The walk comes to what it finds again, unless that leaves.
                    let matters = |message: &Inbound| match left(message) {
                        _ if message.is_stalled() => false,
                        Some(left) if unordered || message.has_stalled() => {
                            next.bring_to(left.max(batch()));
                            false
                        }
                        _ => true,
                    };
                    let message = match queue.step(&mut walk, &mut limit, matters) {
                        Step::Found(message) => message,
                        Step::More => break true,
                        Step::End => break false,
                    };
                    if let Some(left) = left(&message) {
                        next.bring_to(left);
                        break false;
                    }
                    if settled.len() == EXPIRED {
                        break true;
                    }
                    settled.expire(message.take());
                };
                if let Some(walk) = walk.take_if(|_| !more) {
                    queue.end_walk(walk);
                }
                more
            };
            settled.settle(&mut Budget::thread());
            if !more {
                return;
            }
            cond_resched();
        }
    }
}

/// In how many jiffies to look again.
struct Next(Option<Jiffies>);

impl Next {
    fn bring_to(&mut self, delay: Jiffies) {
        self.0 = Some(self.0.map_or(delay, |next| next.min(delay)));
    }
}

impl Locked<'_> {
    /// Returns the messages that were set aside, to have those expire whose time is over now.
    fn aside(&mut self, now: Jiffies) -> Expiring<'_> {
        Expiring {
            messages: &mut self.aside,
            at: Some(now),
            unordered: false,
        }
    }

    /// Returns a queue of messages by number, in the order in which they go from one to the other.
    fn messages(&mut self, tagged: bool, number: usize) -> Option<&mut WalkableQueue<Inbound>> {
        if number == MatchLists::MESSAGES {
            return Some(&mut self.aside);
        }
        self.lists(tagged).messages(number)
    }
}

impl WorkItem for ReceiveQueue {
    fn work(&self) -> &Work<Self> {
        &self.watch
    }

    fn run(this: Arc<Self>) {
        this.lock().watch_at = None;
        let mut next = Next(None);
        for tagged in [false, true] {
            // First: what can be received must not expire.
            if this.lock().lists(tagged).take_over() {
                // The others have their turn, too.
                let mut rounds = ROUNDS;
                loop {
                    let preemption = NoPreemption::begin();
                    let more = this.compare_some(tagged, &mut Budget::thread());
                    drop(preemption);
                    if !more {
                        break;
                    }
                    let Some(left) = rounds.checked_sub(1) else {
                        this.hand_over(tagged);
                        break;
                    };
                    rounds = left;
                    cond_resched();
                }
            }
            let (has_new, looks) = {
                let mut state = this.lock();
                let lists = state.lists(tagged);
                (lists.has_new(), lists.begin_look(jiffies(), batch()))
            };
            if looks {
                this.expire(|state, now| state.lists(tagged).expiring(now), &mut next);
            }
            if has_new {
                // Messages that these may want have not expired; they are looked after.
                next.bring_to(1);
            }
        }
        this.answer();
        this.expire(|state, now| state.aside(now), &mut next);
        if let Next(Some(next)) = next {
            this.watch_after(next);
        }
    }
}
