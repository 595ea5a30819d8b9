// SPDX-License-Identifier: GPL-2.0

//! Texts for error numbers.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    str::CStr, //
};

use crate::kfi::bindings;

/// The text of an error number.
struct Text {
    number: u32,
    text: &'static CStr,
}

macro_rules! texts {
    ($($name:ident = $text:literal,)*) => {
        &[$(
            Text {
                number: bindings::$name,
                text: $text,
            },
        )*]
    };
}

/// All numbers that have a text, those of Linux first. A second name of a number has no entry.
static TEXTS: &[Text] = texts! {
    KFI_SUCCESS = c"Success",
    KFI_EPERM = c"Operation not permitted",
    KFI_ENOENT = c"No such file or object",
    KFI_ESRCH = c"No such process",
    KFI_EINTR = c"Interrupted by a signal",
    KFI_EIO = c"Input/output error",
    KFI_ENXIO = c"No such device or address",
    KFI_E2BIG = c"Argument list too long",
    KFI_ENOEXEC = c"Exec format error",
    KFI_EBADF = c"Bad file descriptor",
    KFI_ECHILD = c"No child processes",
    KFI_EAGAIN = c"Resource temporarily unavailable",
    KFI_ENOMEM = c"Cannot allocate memory",
    KFI_EACCES = c"Permission denied",
    KFI_EFAULT = c"Bad address",
    KFI_ENOTBLK = c"Block device required",
    KFI_EBUSY = c"Device or resource busy",
    KFI_EEXIST = c"File or object exists",
    KFI_EXDEV = c"Invalid cross-device link",
    KFI_ENODEV = c"No such device",
    KFI_ENOTDIR = c"Not a directory",
    KFI_EISDIR = c"Is a directory",
    KFI_EINVAL = c"Invalid argument",
    KFI_ENFILE = c"Too many open files in system",
    KFI_EMFILE = c"Too many open files",
    KFI_ENOTTY = c"Inappropriate ioctl for device",
    KFI_ETXTBSY = c"Text file busy",
    KFI_EFBIG = c"File too large",
    KFI_ENOSPC = c"No space left on device",
    KFI_ESPIPE = c"Illegal seek",
    KFI_EROFS = c"Read-only file system",
    KFI_EMLINK = c"Too many links",
    KFI_EPIPE = c"Broken pipe",
    KFI_EDOM = c"Numerical argument out of domain",
    KFI_ERANGE = c"Numerical result out of range",
    KFI_EDEADLK = c"Resource deadlock avoided",
    KFI_ENAMETOOLONG = c"File name too long",
    KFI_ENOLCK = c"No locks available",
    KFI_ENOSYS = c"Function not implemented",
    KFI_ENOTEMPTY = c"Directory not empty",
    KFI_ELOOP = c"Too many levels of symbolic links",
    KFI_ENOMSG = c"No message of desired type",
    KFI_EIDRM = c"Identifier removed",
    KFI_ECHRNG = c"Channel number out of range",
    KFI_EL2NSYNC = c"Level 2 not synchronized",
    KFI_EL3HLT = c"Level 3 halted",
    KFI_EL3RST = c"Level 3 reset",
    KFI_ELNRNG = c"Link number out of range",
    KFI_EUNATCH = c"Protocol driver not attached",
    KFI_ENOCSI = c"No CSI structure available",
    KFI_EL2HLT = c"Level 2 halted",
    KFI_EBADE = c"Invalid exchange",
    KFI_EBADR = c"Invalid request descriptor",
    KFI_EXFULL = c"Exchange full",
    KFI_ENOANO = c"No anode",
    KFI_EBADRQC = c"Invalid request code",
    KFI_EBADSLT = c"Invalid slot",
    KFI_EBFONT = c"Bad font file format",
    KFI_ENOSTR = c"Device not a stream",
    KFI_ENODATA = c"No data available",
    KFI_ETIME = c"Timer expired",
    KFI_ENOSR = c"Out of streams resources",
    KFI_ENONET = c"Machine is not on the network",
    KFI_ENOPKG = c"Package not installed",
    KFI_EREMOTE = c"Object is remote",
    KFI_ENOLINK = c"Link has been severed",
    KFI_EADV = c"Advertise error",
    KFI_ESRMNT = c"Srmount error",
    KFI_ECOMM = c"Communication error on send",
    KFI_EPROTO = c"Protocol error",
    KFI_EMULTIHOP = c"Multihop attempted",
    KFI_EDOTDOT = c"RFS specific error",
    KFI_EBADMSG = c"Bad message",
    KFI_EOVERFLOW = c"Value too large for defined data type",
    KFI_ENOTUNIQ = c"Name not unique on network",
    KFI_EBADFD = c"File descriptor in bad state",
    KFI_EREMCHG = c"Remote address changed",
    KFI_ELIBACC = c"Cannot access a needed shared library",
    KFI_ELIBBAD = c"Accessing a corrupted shared library",
    KFI_ELIBSCN = c".lib section in a.out corrupted",
    KFI_ELIBMAX = c"Too many shared libraries",
    KFI_ELIBEXEC = c"Cannot execute a shared library directly",
    KFI_EILSEQ = c"Illegal byte sequence",
    KFI_ERESTART = c"Interrupted call should be restarted",
    KFI_ESTRPIPE = c"Streams pipe error",
    KFI_EUSERS = c"Too many users",
    KFI_ENOTSOCK = c"Socket operation on non-socket",
    KFI_EDESTADDRREQ = c"Destination address required",
    KFI_EMSGSIZE = c"Message too long",
    KFI_EPROTOTYPE = c"Protocol wrong type for socket",
    KFI_ENOPROTOOPT = c"Protocol option not available",
    KFI_EPROTONOSUPPORT = c"Protocol not supported",
    KFI_ESOCKTNOSUPPORT = c"Socket type not supported",
    KFI_EOPNOTSUPP = c"Operation not supported",
    KFI_EPFNOSUPPORT = c"Protocol family not supported",
    KFI_EAFNOSUPPORT = c"Address family not supported by protocol",
    KFI_EADDRINUSE = c"Address already in use",
    KFI_EADDRNOTAVAIL = c"Cannot assign requested address",
    KFI_ENETDOWN = c"Network is down",
    KFI_ENETUNREACH = c"Network is unreachable",
    KFI_ENETRESET = c"Network dropped connection on reset",
    KFI_ECONNABORTED = c"Software caused connection abort",
    KFI_ECONNRESET = c"Connection reset by peer",
    KFI_ENOBUFS = c"No buffer space available",
    KFI_EISCONN = c"Endpoint is already connected",
    KFI_ENOTCONN = c"Endpoint is not connected",
    KFI_ESHUTDOWN = c"Cannot send after endpoint shutdown",
    KFI_ETOOMANYREFS = c"Too many references",
    KFI_ETIMEDOUT = c"Timed out",
    KFI_ECONNREFUSED = c"Connection refused",
    KFI_EHOSTDOWN = c"Host is down",
    KFI_EHOSTUNREACH = c"No route to host",
    KFI_EALREADY = c"Operation already in progress",
    KFI_EINPROGRESS = c"Operation now in progress",
    KFI_ESTALE = c"Stale file handle",
    KFI_EUCLEAN = c"Structure needs cleaning",
    KFI_ENOTNAM = c"Not a XENIX named type file",
    KFI_ENAVAIL = c"No XENIX semaphores available",
    KFI_EISNAM = c"Is a named type file",
    KFI_EREMOTEIO = c"Remote I/O error",
    KFI_EDQUOT = c"Quota exceeded",
    KFI_ENOMEDIUM = c"No medium found",
    KFI_EMEDIUMTYPE = c"Wrong medium type",
    KFI_ECANCELED = c"Operation canceled",
    ENOKEY = c"Required key not available",
    KFI_EKEYEXPIRED = c"Key has expired",
    KFI_EKEYREVOKED = c"Key has been revoked",
    KFI_EKEYREJECTED = c"Key was rejected by service",
    KFI_EOWNERDEAD = c"Owner died",
    KFI_ENOTRECOVERABLE = c"State not recoverable",
    ERFKILL = c"Operation not possible due to RF-kill",
    EHWPOISON = c"Memory page has hardware error",
    EFTYPE = c"Wrong file type for the operation",
    KFI_EOTHER = c"Unspecified error",
    KFI_ETOOSMALL = c"Provided buffer is too small",
    KFI_EOPBADSTATE = c"Operation not permitted in this state",
    KFI_EAVAIL = c"Error is available to be read",
    KFI_EBADFLAGS = c"Flags not supported",
    KFI_ENOEQ = c"No event queue is bound",
    KFI_EDOMAIN = c"Object belongs to another domain",
    KFI_ENOCQ = c"No completion queue or counter is bound",
    KFI_ECRC = c"Checksum error",
    KFI_ETRUNC = c"Data was truncated",
    KFI_ENOKEY = c"Memory key is not available",
    KFI_ENOAV = c"No address vector is bound",
    KFI_EOVERRUN = c"Queue has overrun",
};

/// Finds the entry of a number.
const fn find(number: u32) -> Option<usize> {
    let mut index = 0;
    while index < TEXTS.len() {
        if TEXTS[index].number == number {
            return Some(index);
        }
        index += 1;
    }
    None
}

// No number has two entries: the first one found is the one looked at.
const _: () = {
    let mut index = 0;
    while index < TEXTS.len() {
        assert!(matches!(find(TEXTS[index].number), Some(found) if found == index));
        index += 1;
    }
};

// All numbers of kfabric have one.
const _: () = {
    let mut number = bindings::KFI_EOTHER;
    while number < bindings::KFI_ERRNO_MAX {
        assert!(find(number).is_some());
        number += 1;
    }
};

/// Returns a text for an error number, positive or negative.
pub(crate) fn strerror(errnum: c_int) -> &'static CStr {
    match find(errnum.unsigned_abs()) {
        Some(index) => TEXTS[index].text,
        None => c"Unknown error",
    }
}

#[kunit_tests(kfabric_strerror)]
mod tests {
    use super::*;

    fn known(errnum: c_int) -> bool {
        strerror(errnum) != c"Unknown error"
    }

    #[test]
    fn all_numbers_of_linux() {
        for errnum in 1..=133 {
            // The generic numbers have two gaps.
            let gap = errnum == 41 || errnum == 58;
            assert!(known(errnum) != gap);
        }
    }

    #[test]
    fn all_numbers_of_kfabric() {
        for errnum in 256..269 {
            assert!(known(errnum));
        }
        assert_eq!(strerror(256), c"Unspecified error");
        assert_eq!(strerror(259), c"Error is available to be read");
        assert_eq!(strerror(268), c"Queue has overrun");
    }

    #[test]
    fn both_signs() {
        for errnum in 0..1000 {
            assert_eq!(strerror(errnum), strerror(-errnum));
        }
        assert_eq!(strerror(0), c"Success");
        assert_eq!(strerror(-22), c"Invalid argument");
    }

    #[test]
    fn keys_of_linux_and_of_kfabric() {
        assert_eq!(strerror(126), c"Required key not available");
        assert_eq!(strerror(266), c"Memory key is not available");
    }

    #[test]
    fn unknown_numbers() {
        for errnum in [41, 58, 255, 269, 512, 4095, c_int::MAX, c_int::MIN] {
            assert!(!known(errnum));
        }
    }

    #[test]
    fn every_text_once() {
        for (index, entry) in TEXTS.iter().enumerate() {
            assert!(!entry.text.is_empty());
            assert!(TEXTS[..index].iter().all(|other| other.text != entry.text));
        }
    }
}
