// SPDX-License-Identifier: GPL-2.0

//! Texts for C: error numbers and data. The core has no parameters to list.

use core::ptr;
use kernel::{
    error::from_result,
    fmt::{
        self,
        Write, //
    },
    prelude::*,
    str::CStr, //
};

use crate::{
    export::c_export,
    kfi::{
        bindings,
        info::InfoRef, //
    },
    strerror,
    tostr::{
        DomainAttr,
        Enum,
        FabricAttr,
        Flags,
        Value, //
    }, //
};

/// A text that grows, in memory of kmalloc.
struct Text {
    bytes: KVec<u8>,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let appended = self.bytes.extend_from_slice(text.as_bytes(), GFP_KERNEL);
        appended.map_err(|_| fmt::Error)
    }
}

/// Formats a text, which the caller frees with kfree.
fn allocate_text(args: fmt::Arguments<'_>) -> Result<*mut c_char> {
    let mut text = Text { bytes: KVec::new() };
    // Nothing but the allocation fails.
    text.write_fmt(args).map_err(|_| ENOMEM)?;
    text.bytes.push(0, GFP_KERNEL)?;
    Ok(text.bytes.into_raw_parts().0.cast())
}

/// Takes a text from C, `None` for null.
///
/// # Safety
///
/// `text` must be null or a text that stays during `'a`.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: By the safety requirements.
    (!text.is_null()).then(|| unsafe { CStr::from_char_ptr(text) })
}

/// Takes data of a type from C, `None` for null or an unknown type.
///
/// # Safety
///
/// `data` must be null, or valid for what `datatype` says, with all it refers to, and unchanged
/// during `'a`.
unsafe fn value<'a>(data: *const c_void, datatype: bindings::kfi_type) -> Option<Value<'a>> {
    if datatype == bindings::KFI_TYPE_VERSION {
        return Some(Value::Version);
    }
    if data.is_null() {
        return None;
    }
    if let Some(names) = Enum::of(datatype) {
        // SAFETY: `data` is valid for a value of an enumeration by the safety requirements.
        return Some(Value::Enum(names, unsafe { data.cast::<u32>().read() }));
    }
    if let Some(names) = Flags::of(datatype) {
        // SAFETY: `data` is valid for flags by the safety requirements.
        return Some(Value::Flags(names, unsafe { data.cast::<u64>().read() }));
    }
    Some(match datatype {
        // SAFETY: `data` is valid for this type by the safety requirements; here and below.
        bindings::KFI_TYPE_MR_MODE => Value::MrMode(unsafe { data.cast::<c_int>().read() }),
        bindings::KFI_TYPE_INFO => {
            // SAFETY: As above; nothing is written.
            Value::Info(unsafe { InfoRef::from_raw(data.cast_mut().cast()) }?)
        }
        // SAFETY: As above.
        bindings::KFI_TYPE_TX_ATTR => Value::TxAttr(unsafe { &*data.cast() }),
        // SAFETY: As above.
        bindings::KFI_TYPE_RX_ATTR => Value::RxAttr(unsafe { &*data.cast() }),
        // SAFETY: As above.
        bindings::KFI_TYPE_EP_ATTR => Value::EpAttr(unsafe { &*data.cast() }),
        bindings::KFI_TYPE_DOMAIN_ATTR => {
            // SAFETY: As above.
            let attr: &bindings::kfi_domain_attr = unsafe { &*data.cast() };
            Value::DomainAttr(DomainAttr {
                attr,
                // SAFETY: As above.
                name: unsafe { text(attr.name) },
            })
        }
        bindings::KFI_TYPE_FABRIC_ATTR => {
            // SAFETY: As above.
            let attr: &bindings::kfi_fabric_attr = unsafe { &*data.cast() };
            Value::FabricAttr(FabricAttr {
                attr,
                // SAFETY: As above.
                name: unsafe { text(attr.name) },
                // SAFETY: As above.
                prov_name: unsafe { text(attr.prov_name) },
            })
        }
        _ => return None,
    })
}

c_export! {
    /// Implements kfi_strerror.
    ///
    /// # Safety
    ///
    /// None.
    unsafe fn kfi_strerror(errnum: c_int) -> *const c_char {
        strerror::strerror(errnum).as_char_ptr()
    }

    /// Implements kfi_tostr.
    ///
    /// # Safety
    ///
    /// `data` must be null, or valid data of what `datatype` says, with all it refers to.
    unsafe fn kfi_tostr(data: *const c_void, datatype: bindings::kfi_type) -> *mut c_char {
        // SAFETY: By the safety requirements; the value is not kept.
        let Some(value) = (unsafe { value(data, datatype) }) else {
            return ptr::null_mut();
        };
        allocate_text(fmt!("{value}")).unwrap_or(ptr::null_mut())
    }

    /// Implements kfi_getparams: the core has none, which is a null pointer and a count of 0.
    ///
    /// # Safety
    ///
    /// `params` and `count` must be null or valid for writes.
    unsafe fn kfi_getparams(
        params: *mut *mut bindings::kfi_param,
        count: *mut c_int,
    ) -> c_int {
        from_result(|| {
            if params.is_null() || count.is_null() {
                return Err(EINVAL);
            }
            // SAFETY: Both are valid for writes, as they are not null.
            unsafe {
                params.write(ptr::null_mut());
                count.write(0);
            }
            Ok(0)
        })
    }

    /// Implements kfi_freeparams: kfi_getparams has allocated nothing.
    ///
    /// # Safety
    ///
    /// None.
    unsafe fn kfi_freeparams(_params: *mut bindings::kfi_param) {}
}

#[kunit_tests(kfabric_abi_text)]
mod tests {
    use super::*;

    /// Returns whether kfi_tostr gives this text.
    fn gives(data: *const c_void, datatype: bindings::kfi_type, expected: &CStr) -> bool {
        // SAFETY: The tests give data of the right type.
        let raw = unsafe { kfi_tostr(data, datatype) };
        // SAFETY: kfi_tostr returns null or a text.
        let equal = unsafe { text(raw) } == Some(expected);
        // SAFETY: The text is owned.
        unsafe { bindings::kfree(raw.cast()) };
        equal
    }

    #[test]
    fn all_types() {
        // Large enough for all of them.
        let zeros = [0_u64; 64];
        let data = zeros.as_ptr().cast();
        for datatype in bindings::KFI_TYPE_INFO..=bindings::KFI_TYPE_OP_TYPE {
            // SAFETY: For every type all zeros are valid.
            let raw = unsafe { kfi_tostr(data, datatype) };
            assert!(!raw.is_null());
            // SAFETY: The text is owned.
            unsafe { bindings::kfree(raw.cast()) };
        }
        for datatype in [bindings::KFI_TYPE_OP_TYPE + 1, u32::MAX] {
            // SAFETY: Of an unknown type nothing is read.
            assert!(unsafe { kfi_tostr(data, datatype) }.is_null());
        }
    }

    #[test]
    fn no_data() {
        for datatype in bindings::KFI_TYPE_INFO..=bindings::KFI_TYPE_OP_TYPE {
            // SAFETY: `data` may be null.
            let raw = unsafe { kfi_tostr(ptr::null(), datatype) };
            assert!(raw.is_null() != (datatype == bindings::KFI_TYPE_VERSION));
            // SAFETY: The text is owned.
            unsafe { bindings::kfree(raw.cast()) };
        }
    }

    #[test]
    fn words_of_both_sizes() {
        let words = [0x21_u32, 0xffff_ffff];
        let data = words.as_ptr().cast();
        let expected = c"[ KFI_MR_RMA_EVENT, 0x1 ]";
        assert!(gives(data, bindings::KFI_TYPE_MR_MODE, expected));
        let expected = c"Unknown (33)";
        assert!(gives(data, bindings::KFI_TYPE_PROTOCOL, expected));
        let long = 0x1_0000_0020_u64;
        let data = ptr::from_ref(&long).cast();
        let expected = c"[ KFI_MULTICAST, 0x100000000 ]";
        assert!(gives(data, bindings::KFI_TYPE_CAPS, expected));
    }

    #[test]
    fn parts_that_are_missing() {
        let info = bindings::kfi_info::default();
        let expected = c"kfi_info:
    caps: [ ]
    mode: [ ]
    addr_format: KFI_FORMAT_UNSPEC
    src_addrlen: 0
    dest_addrlen: 0
    src_addr: (null)
    dest_addr: (null)
    handle: (null)
    kfi_tx_attr: (null)
    kfi_rx_attr: (null)
    kfi_ep_attr: (null)
    kfi_domain_attr: (null)
    kfi_fabric_attr: (null)
";
        let data = ptr::from_ref(&info).cast();
        assert!(gives(data, bindings::KFI_TYPE_INFO, expected));
    }

    #[test]
    fn names_in_attributes() {
        let attr = bindings::kfi_fabric_attr {
            name: c"loop".as_char_ptr().cast_mut(),
            prov_version: 1,
            ..Default::default()
        };
        let expected = c"kfi_fabric_attr:
    fabric: (null)
    name: loop
    prov_name: (null)
    prov_version: 0.1
    api_version: 0.0
";
        let data = ptr::from_ref(&attr).cast();
        assert!(gives(data, bindings::KFI_TYPE_FABRIC_ATTR, expected));
    }

    #[test]
    fn no_parameters() {
        let mut params = ptr::NonNull::dangling().as_ptr();
        let mut count = -1;
        // SAFETY: Both are valid for writes.
        assert_eq!(unsafe { kfi_getparams(&raw mut params, &raw mut count) }, 0);
        assert!(params.is_null());
        assert_eq!(count, 0);
        // SAFETY: It is what kfi_getparams returned.
        unsafe { kfi_freeparams(params) };
    }

    #[test]
    fn arguments_that_are_missing() {
        let mut params = ptr::null_mut();
        let mut count = 5;
        let inval = EINVAL.to_errno();
        // SAFETY: Both may be null.
        unsafe {
            assert_eq!(kfi_getparams(ptr::null_mut(), &raw mut count), inval);
            assert_eq!(kfi_getparams(&raw mut params, ptr::null_mut()), inval);
            kfi_freeparams(ptr::null_mut());
        }
        assert_eq!(count, 5);
        assert!(params.is_null());
    }
}
