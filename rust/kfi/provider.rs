// SPDX-License-Identifier: GPL-2.0

//! What a provider implements, and the tables that C gets of it.
//!
//! Every class has a trait of its operations. A type that implements the trait and [`Object`]
//! becomes an object of that class; the table of functions, with every slot filled, is built from
//! the trait.
//!
//! [`Object`]: super::fid::Object

mod counter;
mod domain;
mod enosys;
mod fabric;
mod registration;

pub(crate) use counter::{
    CounterAttr,
    CounterClass,
    CounterOps,
    CounterWait, //
};
pub(crate) use domain::{
    DomainClass,
    DomainOps, //
};
pub(crate) use fabric::{
    FabricAttr,
    FabricClass,
    FabricOps, //
};
pub(crate) use registration::{
    Provider,
    Query,
    Registration,
    KFI_VERSION, //
};
