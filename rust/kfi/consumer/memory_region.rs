// SPDX-License-Identifier: GPL-2.0

//! Memory regions.

use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    buffer::{
        Buffer,
        Local,
        One,
        Segment,
        Shape, //
    },
    object::{
        object,
        AnyObject,
        Closable,
        HasWaitQueue,
        Object, //
    },
    Domain, //
};
use crate::kfi::{
    bindings,
    errno::to_result,
    fid::Context,
    flags::OpFlags,
    wait_obj::WaitObj, //
};

/// What an operation hands over for memory that lies in a region.
#[derive(Clone, Copy)]
pub(crate) struct Desc(NonNull<c_void>);

// SAFETY: The pointer is a token of the provider.
unsafe impl Send for Desc {}
// SAFETY: As above.
unsafe impl Sync for Desc {}

impl Desc {
    /// Returns the descriptor for C, null for none.
    pub(super) fn as_raw(this: Option<Self>) -> *mut c_void {
        this.map_or(ptr::null_mut(), |desc| desc.0.as_ptr())
    }
}

/// Which function registers.
#[derive(Clone, Copy)]
pub(crate) enum RegisterForm {
    /// kfi_mr_reg.
    One,
    /// kfi_mr_regv, kfi_mr_regbv, kfi_mr_regsgl.
    Array(Shape),
    /// kfi_mr_regattr.
    Attr(Shape),
}

/// What is registered, and how.
pub(crate) struct Register<'a> {
    /// The function.
    pub(crate) form: RegisterForm,
    /// The memory.
    pub(crate) segments: &'a [Segment],
    /// Operations allowed.
    pub(crate) access: u64,
    /// Reserved by kfabric.
    pub(crate) offset: u64,
    /// The key wanted.
    pub(crate) requested_key: u64,
    /// Flags.
    pub(crate) flags: u64,
    /// The context of the region.
    pub(crate) context: Context,
    /// The authorization key.
    pub(crate) auth_key: &'a [u8],
}

object! {
    /// An open memory region as C knows it.
    Region(kfid_mr)
}

/// An open memory region, with what it needs.
pub(crate) struct MemoryRegion {
    mr: Region,
    /// Until the region is closed; the array as well, since a registration may end with an event.
    held: Option<Arc<Held>>,
}

/// What a region needs.
struct Held {
    _buffers: KVec<Arc<Buffer>>,
    _local: Option<Local>,
}

impl core::ops::Deref for MemoryRegion {
    type Target = Region;

    fn deref(&self) -> &Region {
        &self.mr
    }
}

impl Closable for MemoryRegion {
    type Head = bindings::kfid_mr;

    fn object(&mut self) -> &mut Object<bindings::kfid_mr> {
        self.mr.object()
    }
}

impl Drop for MemoryRegion {
    fn drop(&mut self) {
        if !self.mr.object().end() {
            // Peers may still use the memory.
            core::mem::forget(self.held.take());
        }
    }
}

impl MemoryRegion {
    /// Registers memory, which stays until the region is closed. May sleep.
    ///
    /// The first error is that of this function, the second one that of kfabric.
    pub(crate) fn register(domain: &Domain, register: Register<'_>) -> Result<Result<Self>> {
        let Register {
            form,
            segments,
            access,
            offset,
            requested_key,
            flags,
            context,
            auth_key,
        } = register;
        let mut buffers = KVec::new();
        for buffer in segments.iter().filter_map(Segment::buffer) {
            buffers.push(buffer.clone(), GFP_KERNEL)?;
        }
        let one = match form {
            RegisterForm::One => Some(One::new(segments)?),
            _ => None,
        };
        let local = match form {
            RegisterForm::One => None,
            RegisterForm::Array(shape) | RegisterForm::Attr(shape) => {
                Some(Local::new(segments, shape)?)
            }
        };
        // Before the region, which needs it at once.
        let held = Arc::new(
            Held {
                _buffers: buffers,
                _local: local,
            },
            GFP_KERNEL,
        )?;
        let (domain, context) = (domain.as_raw(), context.as_raw());
        let mut mr = ptr::null_mut();
        let ret = match (&held._local, form, one) {
            // SAFETY: The domain is open; the memory stays until the region is closed.
            (None, _, Some(one)) => unsafe {
                bindings::kfi_mr_reg(
                    domain,
                    one.address,
                    one.len,
                    access,
                    offset,
                    requested_key,
                    flags,
                    &mut mr,
                    context,
                )
            },
            (Some(local), RegisterForm::Attr(_), _) => {
                let mut key = KVec::new();
                key.extend_from_slice(auth_key, GFP_KERNEL)?;
                let attr = bindings::kfi_mr_attr {
                    type_: local.iov_type(),
                    __bindgen_anon_1: bindings::kfi_mr_attr__bindgen_ty_1 {
                        mr_iov: local.as_ptr(),
                    },
                    iov_count: local.count(),
                    access,
                    offset,
                    requested_key,
                    context,
                    auth_key_size: key.len(),
                    auth_key: if key.is_empty() {
                        ptr::null_mut()
                    } else {
                        key.as_mut_ptr()
                    },
                };
                // SAFETY: As above, and so does the array; the attributes are read during the call.
                unsafe { bindings::kfi_mr_regattr(domain, &attr, flags, &mut mr) }
            }
            (Some(local), RegisterForm::Array(shape), _) => {
                macro_rules! register {
                    ($function:ident) => {
                        // SAFETY: As above; the array has the type that the function takes.
                        unsafe {
                            bindings::$function(
                                domain,
                                local.as_ptr(),
                                local.count(),
                                access,
                                offset,
                                requested_key,
                                flags,
                                &mut mr,
                                context,
                            )
                        }
                    };
                }
                match shape {
                    Shape::Kvec => register!(kfi_mr_regv),
                    Shape::Bvec => register!(kfi_mr_regbv),
                    Shape::Sgl => register!(kfi_mr_regsgl),
                    Shape::Ioc => return Err(EINVAL),
                }
            }
            _ => return Err(EINVAL),
        };
        if let Err(error) = to_result(ret) {
            return Ok(Err(error));
        }
        let mr = NonNull::new(mr).ok_or(EIO)?;
        Ok(Ok(Self {
            // SAFETY: It has just been opened.
            mr: Region(unsafe { Object::new(mr) }),
            held: Some(held),
        }))
    }

    /// Returns the key.
    pub(crate) fn key(&self) -> u64 {
        // SAFETY: The region is open.
        unsafe { bindings::kfi_mr_key(self.as_raw()) }
    }

    /// Returns the descriptor.
    pub(crate) fn desc(&self) -> Option<Desc> {
        // SAFETY: The region is open.
        NonNull::new(unsafe { bindings::kfi_mr_desc(self.as_raw()) }).map(Desc)
    }

    /// Tells that pages have changed. May sleep.
    pub(crate) fn refresh(&self, segments: &[Segment], flags: u64) -> Result<Result> {
        let local = Local::new(segments, Shape::Kvec)?;
        // SAFETY: The region is open; the array is read during the call.
        Ok(to_result(unsafe {
            bindings::kfi_mr_refresh(self.as_raw(), local.as_ptr(), local.count(), flags)
        }))
    }

    /// Returns the base address and the length of the raw key, even if there is not as much room.
    /// May sleep.
    pub(crate) fn raw_attr(&self, key: &mut [u8], flags: u64) -> (Result, u64, usize) {
        let (mut base, mut len) = (0, key.len());
        // SAFETY: The region is open; there is room for `len` bytes.
        let ret = to_result(unsafe {
            bindings::kfi_mr_raw_attr(self.as_raw(), &mut base, key.as_mut_ptr(), &mut len, flags)
        });
        (ret, base, len)
    }
}

impl Domain {
    /// Makes a key of the raw key of a peer. May sleep.
    pub(crate) fn map_raw(&self, base: u64, raw_key: &mut [u8], flags: u64) -> Result<u64> {
        let mut key = 0;
        // SAFETY: The domain is open; the key has as many bytes.
        to_result(unsafe {
            bindings::kfi_mr_map_raw(
                self.as_raw(),
                base,
                raw_key.as_mut_ptr(),
                raw_key.len(),
                &mut key,
                flags,
            )
        })?;
        Ok(key)
    }

    /// Releases such a key. May sleep.
    pub(crate) fn unmap_key(&self, key: u64) -> Result {
        // SAFETY: The domain is open.
        to_result(unsafe { bindings::kfi_mr_unmap_key(self.as_raw(), key) })
    }
}
