// SPDX-License-Identifier: GPL-2.0

//! Random sequences of requests that know what requests look like.
//!
//! A sequence is made from a seed alone ([`generate`]):
//! [`requests`](crate::requests) says what is in each request, and a model of the objects that should be open by then
//! says what to put there. Most requests make sense; in some, a few bytes,
//! the size or the number are changed. Objects are named by slots, which get
//! their handles while the sequence runs ([`execute`]), so that any part of a
//! sequence is a sequence, too, and a long one that fails is made short by
//! leaving out what does not matter ([`shrink`]).
//!
//! A round runs one sequence, or lets two processes run one each on objects
//! that both know. It fails if a process dies or hangs, or if an answer cannot
//! be right whatever the other process does: an errno that is not documented,
//! a handle that was used before, success with an object that is closed. What
//! the kernel complains about the harness sees.
//!
//! Rounds are announced in the kernel's log. When the machine dies in one,
//! `qemu-test/shrink` boots it again and again to find a shorter one.
//!
//! Where the kernel tells which of its code was reached ([`watched`]), sequences that come to new
//! places are kept ([`learn`], [`text`]), and others are made of them ([`mutate`], [`recipe`]).

pub mod execute;
pub mod generate;
pub mod learn;
pub mod mutate;
pub mod recipe;
pub mod replay;
pub mod shrink;
pub mod text;
pub mod watched;
