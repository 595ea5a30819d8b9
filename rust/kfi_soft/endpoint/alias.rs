// SPDX-License-Identifier: GPL-2.0

//! Aliases: the same endpoint under another handle, with default flags of its own.

#![deny(unsafe_code)]

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    }, //
};

use super::HasCore;
use crate::kfi::{
    control::Control,
    fid::{
        AnyFid,
        Context,
        Fid,
        Object, //
    },
    flags::OpFlags,
    hold::Hold,
    provider::{
        kfi_datatype,
        kfi_op,
        AtomicCall,
        EndpointClass,
        EndpointOps,
        NoContext,
        Operation, //
    }, //
};

/// An alias of an endpoint or context. The endpoint cannot be closed before it.
pub(crate) struct Alias<T: HasCore> {
    base: Hold<T>,
    /// The default flags of the alias are those of this direction.
    receive: bool,
    flags: Atomic<u64>,
}

impl<T: HasCore + Object<Class = EndpointClass<NUMBER>>, const NUMBER: u32> Alias<T> {
    /// Opens an alias; `flags` say the direction, exactly one, and the default flags for it.
    pub(super) fn open(base: &Fid<T>, flags: OpFlags) -> Result<Arc<Fid<Self>>> {
        let transmit = flags.contains(OpFlags::TRANSMIT);
        let receive = flags.contains(OpFlags::RECV);
        if transmit == receive {
            return Err(EINVAL);
        }
        let flags = super::defaults(receive, flags)?;
        let core = base.core();
        if (receive && !core.receives) || (transmit && !core.transmits) {
            return Err(EINVAL);
        }
        Fid::new(
            Self {
                base: Hold::new(base)?,
                receive,
                flags: Atomic::new(flags.as_raw()),
            },
            base.context(),
        )
    }

    /// Returns whether it is the receive direction that flags name; by default that of the alias.
    fn direction(&self, flags: OpFlags) -> Result<bool> {
        let named = (
            flags.contains(OpFlags::TRANSMIT),
            flags.contains(OpFlags::RECV),
        );
        match named {
            (true, true) => Err(EINVAL),
            (false, false) => Ok(self.receive),
            (_, receive) => Ok(receive),
        }
    }

    /// Returns the endpoint.
    pub(crate) fn base(&self) -> &Fid<T> {
        self.base.fid()
    }
}

impl<T: HasCore + Object<Class = EndpointClass<NUMBER>>, const NUMBER: u32> Object for Alias<T> {
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
                let receive = this.direction(out.asked())?;
                out.set(this.default_flags(receive));
                Ok(())
            }
            Control::SetOpsFlag(flags) => {
                // Those of the other direction are the endpoint's.
                if this.direction(flags)? != this.receive {
                    return Err(EINVAL);
                }
                let defaults = super::defaults(this.receive, flags)?;
                // Relaxed: a number that stands for itself.
                this.flags.store(defaults.as_raw(), ordering::Relaxed);
                Ok(())
            }
            command => T::control(this.base.fid(), command),
        }
    }
}

impl<T: HasCore + Object<Class = EndpointClass<NUMBER>>, const NUMBER: u32> EndpointOps
    for Alias<T>
{
    type TransmitContext = NoContext;
    type ReceiveContext = NoContext;

    fn default_flags(&self, receive: bool) -> OpFlags {
        if receive == self.receive {
            // Relaxed: a number that stands for itself.
            OpFlags::from_raw(self.flags.load(ordering::Relaxed))
        } else {
            self.base.default_flags(receive)
        }
    }

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

    fn name(&self, tell: &mut dyn FnMut(&[u8]) -> Result) -> Result {
        self.base.name(tell)
    }

    fn set_name(this: &Fid<Self>, name: &[u8]) -> Result {
        T::set_name(this.base.fid(), name)
    }

    fn atomic_limit(&self, call: AtomicCall, datatype: kfi_datatype, op: kfi_op) -> Result<usize> {
        self.base.atomic_limit(call, datatype, op)
    }
}
