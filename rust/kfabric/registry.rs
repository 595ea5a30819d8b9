// SPDX-License-Identifier: GPL-2.0

//! The registered providers.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    str::CStr,
    sync::{
        new_mutex,
        Mutex, //
    }, //
};

use crate::{
    abi::{
        provider::{
            Candidate,
            Provider,
            ProviderId,
            RawQuery, //
        },
        table::Table,
        trace, //
    },
    fabrics::Serial,
    kfi::{
        info::{
            Info,
            KFI_VERSION, //
        },
        linux::modules::Modules, //
    }, //
};

/// The registry's note about a provider.
struct Note {
    /// Identifies the registration.
    serial: Serial,
    /// Where its answers come: in the order of registration, but a provider that replaced another
    /// one has that one's place. So a query that is going on finds exactly one of both.
    place: Serial,
    /// Whether a newer provider of the same name was registered since. It is not asked any more,
    /// and stays so when that one leaves.
    replaced: bool,
}

/// A registered provider, for those who want to look.
pub(crate) struct Listed {
    /// Identifies the registration.
    pub(crate) serial: Serial,
    /// The provider.
    pub(crate) provider: Provider,
    /// Whether it does not answer any more.
    pub(crate) replaced: bool,
}

/// The part that the lock protects.
struct State {
    /// The providers.
    table: Table<Note>,
    /// The serial of the last registration.
    last: Serial,
}

impl State {
    /// Returns the providers that answer, with their notes.
    fn active(&self) -> impl Iterator<Item = (&Provider, &Note)> {
        self.table.iter().filter(|(_, note)| !note.replaced)
    }
}

/// The providers, of which those of different names answer.
#[pin_data]
pub(crate) struct Registry {
    /// The providers, behind the lock.
    #[pin]
    state: Mutex<State>,
}

impl Registry {
    /// No providers.
    pub(crate) fn new() -> impl PinInit<Self> {
        let state = State {
            table: Table::new(),
            last: Serial(0),
        };
        pin_init!(Self {
            state <- new_mutex!(state, "kfabric::Registry"),
        })
    }

    /// Registers a provider, which replaces an older one of its name.
    ///
    /// - `ENOSYS` if it was built for another major version of the API than ours, or a later one.
    /// - `EINVAL` if its callbacks do not belong to one module that we know.
    /// - `EEXIST` if it is registered, or one of its name that is not older.
    pub(crate) fn register(&self, modules: &Modules, candidate: Candidate) -> Result {
        let api_version = candidate.api_version();
        if api_version >> 16 != KFI_VERSION >> 16 || api_version > KFI_VERSION {
            return Err(ENOSYS);
        }
        if candidate.module(modules).is_none() {
            pr_err!(
                "{}: not in a module that was loaded after kfabric\n",
                candidate.name()
            );
            return Err(EINVAL);
        }

        let mut state = self.state.lock();
        let state = &mut *state;
        let older = state
            .active()
            .find(|(other, _)| other.name() == candidate.name());
        if older.is_some_and(|(other, _)| other.version() >= candidate.version()) {
            return Err(EEXIST);
        }
        let older = older.map(|(_, note)| (note.serial, note.place));
        let serial = Serial(state.last.0 + 1);
        let note = Note {
            serial,
            place: older.map_or(serial, |(_, place)| place),
            replaced: false,
        };
        state.table.insert(candidate, note)?;
        state.last = serial;
        if let Some((older, _)) = older {
            for (_, note) in state.table.iter_mut() {
                note.replaced |= note.serial == older;
            }
        }
        Ok(())
    }

    /// Removes a provider and waits until nobody uses it; `EINVAL` if it is not registered.
    pub(crate) fn deregister(&self, id: ProviderId) -> Result {
        let provider = self.state.lock().table.take(id).ok_or(EINVAL)?;
        // Outside of the lock: it waits for callbacks, which may call the core.
        let retired = provider.retire();
        self.state.lock().table.remove(retired);
        Ok(())
    }

    /// Finds the provider of a name.
    pub(crate) fn find(&self, name: &CStr) -> Option<(Serial, Provider)> {
        let state = self.state.lock();
        let (provider, note) = state
            .active()
            .find(|(provider, _)| provider.name() == name)?;
        Some((note.serial, provider.clone()))
    }

    /// Finds the next provider after a place, up to a last one; of a name, if there is one.
    fn next(&self, after: Serial, last: Serial, name: Option<&CStr>) -> Option<(Serial, Provider)> {
        let state = self.state.lock();
        let (provider, note) = state
            .active()
            .filter(|(_, note)| note.place > after && note.place <= last)
            .filter(|(provider, _)| name.is_none_or(|name| name == provider.name()))
            .min_by_key(|(_, note)| note.place)?;
        Some((note.place, provider.clone()))
    }

    /// Finds the provider that was registered next after a registration.
    pub(crate) fn after(&self, serial: Serial) -> Option<Listed> {
        let state = self.state.lock();
        let (provider, note) = state
            .table
            .iter()
            .filter(|(_, note)| note.serial > serial)
            .min_by_key(|(_, note)| note.serial)?;
        Some(Listed {
            serial: note.serial,
            provider: provider.clone(),
            replaced: note.replaced,
        })
    }

    /// Asks all providers, or the one of a name, and returns their answers in the order of
    /// registration.
    ///
    /// One after the other, and only the one that is being asked is kept from leaving. A
    /// provider that registers meanwhile under a new name is not asked.
    ///
    /// A provider that fails does not hide the answers of others. If there is no answer, `ENODATA`
    /// if any provider said so or there is none, else what the first one said. `ENOSYS` if the
    /// caller was written for a later version of the API than ours.
    pub(crate) fn getinfo(
        &self,
        modules: &Modules,
        name: Option<&CStr>,
        query: &RawQuery<'_>,
    ) -> Result<Info> {
        if query.version() > KFI_VERSION {
            return Err(ENOSYS);
        }
        let mut answer: Option<Info> = None;
        let mut error = None;
        let mut place = Serial(0);
        let last = self.state.lock().last;
        while let Some((next, provider)) = self.next(place, last, name) {
            place = next;
            let Some(pinned) = provider.pin(modules) else {
                continue;
            };
            let answered = pinned.getinfo(query);
            trace::provider_getinfo(
                provider.name(),
                match &answered {
                    Ok(Some(info)) => c_int::try_from(info.iter().count()).unwrap_or(c_int::MAX),
                    Ok(None) => 0,
                    Err(error) => error.to_errno(),
                },
            );
            match (answered, &mut answer) {
                (Ok(Some(info)), Some(answer)) => answer.append(info),
                (Ok(Some(info)), None) => answer = Some(info),
                (Ok(None), _) => error = Some(ENODATA),
                (Err(other), _) => {
                    if error.is_none() || other == ENODATA {
                        error = Some(other);
                    }
                }
            }
        }
        answer.ok_or(error.unwrap_or(ENODATA))
    }
}
