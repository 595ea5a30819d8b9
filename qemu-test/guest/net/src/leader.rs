// SPDX-License-Identifier: GPL-2.0

//! The first machine's knowledge of all.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::control::{self, Answer, Done, Life, Link, Order, Peer, Plan, Received, PORT};
use crate::Failure;

/// Patience beyond the time of the traffic itself; a slow machine may boot meanwhile.
const PATIENCE: Duration = Duration::from_secs(300);

/// Something from a machine; no answer if its connection is gone.
struct Event {
    /// Whose connection that is, once it has said so.
    life: Option<Life>,
    answer: Option<(Answer, TcpStream)>,
}

/// A machine that is there.
struct Member {
    peer: Peer,
    orders: TcpStream,
    /// Whether it is to tell how its traffic went.
    busy: bool,
}

/// The accounts of all machines.
pub(crate) struct Books {
    /// Traffic that each has made, as far as it is over.
    pub(crate) done: BTreeMap<Life, Done>,
    /// Messages that each has received in its life.
    pub(crate) received: BTreeMap<Life, Received>,
}

/// All machines.
pub(crate) struct Leader {
    machines: u32,
    members: BTreeMap<u32, Member>,
    events: Receiver<Event>,
    /// Accounts of the traffic that is going on.
    done: BTreeMap<Life, Done>,
    received: BTreeMap<Life, Received>,
    /// The traffic that machines which come back are to make.
    plan: Option<(Plan, Instant)>,
    /// Machines that were struck and are not back.
    pub(crate) away: usize,
    /// After how long without a word machines give each other up.
    pub(crate) peer_timeout: Duration,
}

fn serve(socket: TcpStream, events: &Sender<Event>) -> Result<(), Failure> {
    let (mut reader, writer) = Link::new(socket)?.split();
    let mut life = None;
    loop {
        let answer: Option<Answer> = control::receive(&mut reader).unwrap_or(None);
        if let Some(Answer::Here(peer)) = &answer {
            life = Some(peer.life);
        }
        let last = answer.is_none();
        let answer = match answer {
            Some(answer) => Some((answer, writer.try_clone()?)),
            None => None,
        };
        if events.send(Event { life, answer }).is_err() || last {
            return Ok(());
        }
    }
}

impl Leader {
    /// Lets machines come.
    pub(crate) fn new(machines: u32, peer_timeout: Duration) -> Result<Self, Failure> {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
        let (sender, events) = mpsc::channel();
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let sender = sender.clone();
                thread::spawn(move || serve(socket, &sender));
            }
        });
        Ok(Self {
            machines,
            members: BTreeMap::new(),
            events,
            done: BTreeMap::new(),
            received: BTreeMap::new(),
            plan: None,
            away: 0,
            peer_timeout,
        })
    }

    /// Returns how many machines there are.
    pub(crate) fn machines(&self) -> u32 {
        self.machines
    }

    fn order(&self, machine: u32, order: &Order) -> Result<(), Failure> {
        let member = self.members.get(&machine).ok_or("no such machine")?;
        Ok(control::send(&member.orders, order)?)
    }

    fn tell_all(&self, order: &Order) -> Result<(), Failure> {
        for machine in self.members.keys() {
            self.order(*machine, order)?;
        }
        Ok(())
    }

    fn introduce(&self) -> Result<(), Failure> {
        let peers = self.members.values().map(|member| member.peer.clone());
        self.tell_all(&Order::Peers(peers.collect()))
    }

    /// Looks after one event; `false` if there is none by then.
    fn step(&mut self, until: Instant) -> Result<bool, Failure> {
        let patience = until.saturating_duration_since(Instant::now());
        let Event { life, answer } = match self.events.recv_timeout(patience) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => return Ok(false),
            Err(RecvTimeoutError::Disconnected) => return Err("nobody listens".into()),
        };
        let (Some(life), Some((answer, orders))) = (life, answer) else {
            return Ok(true);
        };
        let machine = life.machine;
        match answer {
            Answer::Here(peer) => {
                let back = self.members.contains_key(&machine);
                let member = Member {
                    peer,
                    orders,
                    busy: false,
                };
                self.members.insert(machine, member);
                if back {
                    if self.away == 0 {
                        return Err(format!("machine {machine} began anew by itself").into());
                    }
                    self.away -= 1;
                    self.introduce()?;
                    if let Some((plan, end)) = self.plan.clone() {
                        let left = end.saturating_duration_since(Instant::now());
                        let millis = left.as_millis() as u64;
                        self.begin(machine, Plan { millis, ..plan })?;
                    }
                } else if self.members.len() as u32 == self.machines {
                    self.introduce()?;
                }
            }
            Answer::Done(done) => {
                self.done.insert(life, done);
                self.rest(life);
            }
            Answer::Received(received) => {
                self.received.insert(life, received);
                self.rest(life);
            }
            Answer::Failed(text) => {
                return Err(format!("machine {machine}: {text}").into());
            }
        }
        Ok(true)
    }

    /// A machine has answered, if it is still that one.
    fn rest(&mut self, life: Life) {
        if let Some(member) = self.members.get_mut(&life.machine) {
            member.busy &= member.peer.life != life;
        }
    }

    fn wait(&mut self, what: &str, over: impl Fn(&Self) -> bool) -> Result<(), Failure> {
        let end = Instant::now() + PATIENCE;
        while !over(self) {
            if !self.step(end)? {
                return Err(format!("no end of {what}").into());
            }
        }
        Ok(())
    }

    /// Waits until all machines are there.
    pub(crate) fn gather(&mut self) -> Result<(), Failure> {
        self.wait("waiting for machines", |leader| {
            leader.members.len() as u32 == leader.machines && leader.away == 0
        })
    }

    fn begin(&mut self, machine: u32, plan: Plan) -> Result<(), Failure> {
        self.order(machine, &Order::Traffic(plan))?;
        if let Some(member) = self.members.get_mut(&machine) {
            member.busy = true;
        }
        Ok(())
    }

    /// Lets all machines make traffic.
    pub(crate) fn traffic(&mut self, plan: &Plan) -> Result<(), Failure> {
        self.done.clear();
        self.received.clear();
        let end = Instant::now() + Duration::from_millis(plan.millis);
        self.plan = Some((plan.clone(), end));
        for machine in 1..=self.machines {
            self.begin(machine, plan.clone())?;
        }
        Ok(())
    }

    /// Lets time go by.
    pub(crate) fn pass(&mut self, time: Duration) -> Result<(), Failure> {
        let end = Instant::now() + time;
        while self.step(end)? {}
        Ok(())
    }

    /// Gives an order to a machine after which it begins a new life.
    pub(crate) fn strike(&mut self, machine: u32, order: &Order) -> Result<(), Failure> {
        self.order(machine, order)?;
        self.away += 1;
        if let Some(member) = self.members.get_mut(&machine) {
            member.busy = false;
        }
        Ok(())
    }

    /// Waits for the end of the traffic; returns what each machine has done and received.
    pub(crate) fn finish(&mut self) -> Result<Books, Failure> {
        let idle = |leader: &Self| leader.members.values().all(|member| !member.busy);
        self.gather()?;
        self.wait("traffic", idle)?;
        self.plan = None;
        for machine in 1..=self.machines {
            self.order(machine, &Order::Tell)?;
            if let Some(member) = self.members.get_mut(&machine) {
                member.busy = true;
            }
        }
        self.wait("telling what was received", idle)?;
        Ok(Books {
            done: std::mem::take(&mut self.done),
            received: std::mem::take(&mut self.received),
        })
    }

    /// Lets all machines end.
    pub(crate) fn dismiss(self) -> Result<(), Failure> {
        self.tell_all(&Order::Bye)
    }
}
