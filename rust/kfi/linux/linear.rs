// SPDX-License-Identifier: GPL-2.0

//! Values of which there is one.

/// A part of a value that is neither copied nor cloned, whoever would like it to be.
///
/// A structure whose fields can all be copied is `Copy` as soon as any code of its crate says so, also
/// code that sees none of the fields; and modules are compiled into one crate with all that is here. So
/// what is to be used once has a field of this type. It takes no room, and it must not become `Copy`
/// either: no code that could say so is able to name it, as the module that it is in is private.
pub struct Linear;
