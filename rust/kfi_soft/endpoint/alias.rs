// SPDX-License-Identifier: GPL-2.0

//! Aliases: the same endpoint under another handle, with default flags of its own.

#![forbid(unsafe_code)]

use kernel::prelude::*;

use super::HasEndpointState;
use crate::kfi::{
    context::Context,
    control::Control,
    errno::EBADFLAGS,
    fid::{
        AnyFid,
        Fid,
        NewAlias,
        NewFid,
        Object,
        Opening, //
    },
    flags::OpFlags,
    hold::Hold,
    provider::{
        kfi_datatype,
        kfi_op,
        Answer,
        AtomicCall,
        Direction,
        EndpointClass,
        EndpointOps,
        NoReceiveContext,
        NoTransmitContext,
        Operation, //
    }, //
};

/// An alias of an endpoint or context. The endpoint cannot be closed before it.
pub(crate) struct Alias<T: HasEndpointState> {
    base: Hold<T>,
    /// The default flags of the alias are those of this direction.
    direction: Direction,
}

impl<T: HasEndpointState + Object<Class = EndpointClass<NUMBER>>, const NUMBER: u32> Alias<T> {
    /// Opens an alias; `flags` say the direction, exactly one, and the default flags for it.
    pub(super) fn open<'o>(
        base: &Fid<T>,
        flags: OpFlags,
        opening: Opening<'o, EndpointClass<NUMBER>>,
    ) -> Result<NewFid<'o, Self>> {
        let direction = super::direction(flags)?;
        super::check_defaults(direction, flags).map_err(|_| EBADFLAGS)?;
        base.endpoint_state().check_direction(direction)?;
        NewFid::new(
            Self {
                base: Hold::new(base)?,
                direction,
            },
            opening,
        )
    }

    /// Returns the endpoint.
    pub(crate) fn base(&self) -> &Fid<T> {
        self.base.fid()
    }
}

impl<T: HasEndpointState + Object<Class = EndpointClass<NUMBER>>, const NUMBER: u32> Object
    for Alias<T>
{
    type Class = EndpointClass<NUMBER>;

    fn release(&self) {
        self.base.release();
    }

    fn bind(this: &Fid<Self>, other: AnyFid<'_>, flags: u64) -> Result {
        T::bind(this.base.fid(), other, flags)
    }

    fn control<'a>(this: &'a Fid<Self>, command: Control<'a>) -> Result {
        match command {
            Control::GetOpsFlag(out) => {
                let direction = super::direction(out.asked())?;
                super::check_defaults(direction, out.asked())?;
                out.set(this.default_flags(direction));
                Ok(())
            }
            Control::SetOpsFlag(flags) => {
                // Flags of the other direction belong to the endpoint.
                if super::direction(flags)? != this.direction {
                    return Err(EINVAL);
                }
                super::check_defaults(this.direction, flags)
            }
            command => T::control(this.base.fid(), command),
        }
    }

    fn alias<'o>(
        this: &Fid<Self>,
        flags: OpFlags,
        opening: Opening<'o, Self::Class>,
    ) -> Result<NewAlias<'o, Self::Class>> {
        T::alias(this.base.fid(), flags, opening)
    }
}

impl<T: HasEndpointState + Object<Class = EndpointClass<NUMBER>>, const NUMBER: u32> EndpointOps
    for Alias<T>
{
    type TransmitContext = NoTransmitContext;
    type ReceiveContext = NoReceiveContext;

    fn post(this: &Fid<Self>, operation: Operation<'_>) -> Result {
        T::post(this.base.fid(), operation)
    }

    fn cancel(&self, context: Context) -> Result {
        self.base.cancel(context)
    }

    fn min_multi_recv(&self) -> Result<usize> {
        self.base.min_multi_recv()
    }

    fn set_min_multi_recv(&self, size: usize) -> Result {
        self.base.set_min_multi_recv(size)
    }

    fn name(&self, answer: Answer<'_>) -> Result {
        self.base.name(answer)
    }

    fn set_name(this: &Fid<Self>, name: &[u8]) -> Result {
        T::set_name(this.base.fid(), name)
    }

    fn atomic_limit(&self, call: AtomicCall, datatype: kfi_datatype, op: kfi_op) -> Result<usize> {
        self.base.atomic_limit(call, datatype, op)
    }
}
