/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kfabric: error numbers.
 */

#ifndef _KFI_ERRNO_H_
#define _KFI_ERRNO_H_

#include <linux/errno.h>

/**
 * DOC: Error numbers
 *
 * kfabric calls return 0 or a negative error number. Numbers below
 * %KFI_ERRNO_OFFSET are those of Linux under a second name, so that
 * ``-KFI_EAGAIN`` and ``-EAGAIN`` compare equal. Numbers from
 * %KFI_ERRNO_OFFSET on exist in kfabric only: they have no meaning as the
 * result of a system call, and a consumer that hands results to user space has
 * to translate them.
 *
 * In completion and event error entries the numbers are positive
 * (&kfi_cq_err_entry.err, &kfi_eq_err_entry.err).
 */

/* The call succeeded */
#define KFI_SUCCESS		0

/* Numbers shared with Linux */
#define KFI_EPERM		EPERM		/* operation not permitted */
#define KFI_ENOENT		ENOENT		/* no such object */
#define KFI_ESRCH		ESRCH		/* no such process */
#define KFI_EINTR		EINTR		/* interrupted by a signal */
#define KFI_EIO			EIO		/* I/O error */
#define KFI_ENXIO		ENXIO		/* no such device or address */
#define KFI_E2BIG		E2BIG		/* argument list too long */
#define KFI_ENOEXEC		ENOEXEC		/* exec format error */
#define KFI_EBADF		EBADF		/* bad object or descriptor */
#define KFI_ECHILD		ECHILD		/* no child process */
#define KFI_EAGAIN		EAGAIN		/* nothing now, try again */
#define KFI_ENOMEM		ENOMEM		/* out of memory */
#define KFI_EACCES		EACCES		/* permission denied */
#define KFI_EFAULT		EFAULT		/* bad address */
#define KFI_ENOTBLK		ENOTBLK		/* block device required */
#define KFI_EBUSY		EBUSY		/* object is in use */
#define KFI_EEXIST		EEXIST		/* object exists already */
#define KFI_EXDEV		EXDEV		/* cross-device link */
#define KFI_ENODEV		ENODEV		/* no such device */
#define KFI_ENOTDIR		ENOTDIR		/* not a directory */
#define KFI_EISDIR		EISDIR		/* is a directory */
#define KFI_EINVAL		EINVAL		/* invalid argument */
#define KFI_ENFILE		ENFILE		/* system has too many open */
#define KFI_EMFILE		EMFILE		/* too many open objects */
#define KFI_ENOTTY		ENOTTY		/* not for this kind of file */
#define KFI_ETXTBSY		ETXTBSY		/* text file busy */
#define KFI_EFBIG		EFBIG		/* file too large */
#define KFI_ENOSPC		ENOSPC		/* no space or slot left */
#define KFI_ESPIPE		ESPIPE		/* illegal seek */
#define KFI_EROFS		EROFS		/* read-only file system */
#define KFI_EMLINK		EMLINK		/* too many links */
#define KFI_EPIPE		EPIPE		/* broken pipe */
#define KFI_EDOM		EDOM		/* argument out of domain */
#define KFI_ERANGE		ERANGE		/* result out of range */
#define KFI_EDEADLK		EDEADLK		/* deadlock would occur */
#define KFI_ENAMETOOLONG	ENAMETOOLONG	/* name too long */
#define KFI_ENOLCK		ENOLCK		/* no record locks available */
#define KFI_ENOSYS		ENOSYS		/* the provider lacks it */
#define KFI_ENOTEMPTY		ENOTEMPTY	/* directory not empty */
#define KFI_ELOOP		ELOOP		/* too many symbolic links */
#define KFI_EWOULDBLOCK		EWOULDBLOCK	/* same number as KFI_EAGAIN */
#define KFI_ENOMSG		ENOMSG		/* no message of that type */
#define KFI_EIDRM		EIDRM		/* identifier removed */
#define KFI_ECHRNG		ECHRNG		/* channel out of range */
#define KFI_EL2NSYNC		EL2NSYNC	/* level 2 not synchronized */
#define KFI_EL3HLT		EL3HLT		/* level 3 halted */
#define KFI_EL3RST		EL3RST		/* level 3 reset */
#define KFI_ELNRNG		ELNRNG		/* link number out of range */
#define KFI_EUNATCH		EUNATCH		/* driver not attached */
#define KFI_ENOCSI		ENOCSI		/* no CSI structure available */
#define KFI_EL2HLT		EL2HLT		/* level 2 halted */
#define KFI_EBADE		EBADE		/* invalid exchange */
#define KFI_EBADR		EBADR		/* invalid request descriptor */
#define KFI_EXFULL		EXFULL		/* exchange full */
#define KFI_ENOANO		ENOANO		/* no anode */
#define KFI_EBADRQC		EBADRQC		/* invalid request code */
#define KFI_EBADSLT		EBADSLT		/* invalid slot */
#define KFI_EDEADLOCK		EDEADLOCK	/* same number as KFI_EDEADLK */
#define KFI_EBFONT		EBFONT		/* bad font file format */
#define KFI_ENOSTR		ENOSTR		/* device not a stream */
#define KFI_ENODATA		ENODATA		/* no data, nothing matches */
#define KFI_ETIME		ETIME		/* timer expired */
#define KFI_ENOSR		ENOSR		/* out of stream resources */
#define KFI_ENONET		ENONET		/* not on the network */
#define KFI_ENOPKG		ENOPKG		/* package not installed */
#define KFI_EREMOTE		EREMOTE		/* object is remote */
#define KFI_ENOLINK		ENOLINK		/* link has been severed */
#define KFI_EADV		EADV		/* advertise error */
#define KFI_ESRMNT		ESRMNT		/* srmount error */
#define KFI_ECOMM		ECOMM		/* error on send */
#define KFI_EPROTO		EPROTO		/* protocol error */
#define KFI_EMULTIHOP		EMULTIHOP	/* multihop attempted */
#define KFI_EDOTDOT		EDOTDOT		/* RFS specific error */
#define KFI_EBADMSG		EBADMSG		/* not a data message */
#define KFI_EOVERFLOW		EOVERFLOW	/* value too large for type */
#define KFI_ENOTUNIQ		ENOTUNIQ	/* name not unique */
#define KFI_EBADFD		EBADFD		/* descriptor in bad state */
#define KFI_EREMCHG		EREMCHG		/* remote address changed */
#define KFI_ELIBACC		ELIBACC		/* no access to library */
#define KFI_ELIBBAD		ELIBBAD		/* corrupted shared library */
#define KFI_ELIBSCN		ELIBSCN		/* .lib section corrupted */
#define KFI_ELIBMAX		ELIBMAX		/* too many shared libraries */
#define KFI_ELIBEXEC		ELIBEXEC	/* cannot execute library */
#define KFI_EILSEQ		EILSEQ		/* illegal byte sequence */
#define KFI_ERESTART		ERESTART	/* call should be restarted */
#define KFI_ESTRPIPE		ESTRPIPE	/* streams pipe error */
#define KFI_EUSERS		EUSERS		/* too many users */
#define KFI_ENOTSOCK		ENOTSOCK	/* not a socket */
#define KFI_EDESTADDRREQ	EDESTADDRREQ	/* destination required */
#define KFI_EMSGSIZE		EMSGSIZE	/* message does not fit */
#define KFI_EPROTOTYPE		EPROTOTYPE	/* wrong protocol type */
#define KFI_ENOPROTOOPT		ENOPROTOOPT	/* option not available */
#define KFI_EPROTONOSUPPORT	EPROTONOSUPPORT	/* protocol not supported */
#define KFI_ESOCKTNOSUPPORT	ESOCKTNOSUPPORT	/* socket type not supported */
#define KFI_EOPNOTSUPP		EOPNOTSUPP	/* operation not supported */
#define KFI_EPFNOSUPPORT	EPFNOSUPPORT	/* protocols not supported */
#define KFI_EAFNOSUPPORT	EAFNOSUPPORT	/* family not supported */
#define KFI_EADDRINUSE		EADDRINUSE	/* address in use */
#define KFI_EADDRNOTAVAIL	EADDRNOTAVAIL	/* address cannot be assigned */
#define KFI_ENETDOWN		ENETDOWN	/* network is down */
#define KFI_ENETUNREACH		ENETUNREACH	/* network is unreachable */
#define KFI_ENETRESET		ENETRESET	/* dropped by the network */
#define KFI_ECONNABORTED	ECONNABORTED	/* connection aborted */
#define KFI_ECONNRESET		ECONNRESET	/* reset by the peer */
#define KFI_ENOBUFS		ENOBUFS		/* no buffer space available */
#define KFI_EISCONN		EISCONN		/* already connected */
#define KFI_ENOTCONN		ENOTCONN	/* not connected */
#define KFI_ESHUTDOWN		ESHUTDOWN	/* endpoint was shut down */
#define KFI_ETOOMANYREFS	ETOOMANYREFS	/* too many references */
#define KFI_ETIMEDOUT		ETIMEDOUT	/* timed out */
#define KFI_ECONNREFUSED	ECONNREFUSED	/* connection refused */
#define KFI_EHOSTDOWN		EHOSTDOWN	/* host is down */
#define KFI_EHOSTUNREACH	EHOSTUNREACH	/* no route to the host */
#define KFI_EALREADY		EALREADY	/* in progress or done */
#define KFI_EINPROGRESS		EINPROGRESS	/* operation now in progress */
#define KFI_ESTALE		ESTALE		/* stale handle */
#define KFI_EUCLEAN		EUCLEAN		/* structure needs cleaning */
#define KFI_ENOTNAM		ENOTNAM		/* not a named type file */
#define KFI_ENAVAIL		ENAVAIL		/* no semaphores available */
#define KFI_EISNAM		EISNAM		/* is a named type file */
#define KFI_EREMOTEIO		EREMOTEIO	/* remote I/O error */
#define KFI_EDQUOT		EDQUOT		/* quota exceeded */
#define KFI_ENOMEDIUM		ENOMEDIUM	/* no medium found */
#define KFI_EMEDIUMTYPE		EMEDIUMTYPE	/* wrong medium type */
#define KFI_ECANCELED		ECANCELED	/* operation canceled */
#define KFI_EKEYEXPIRED		EKEYEXPIRED	/* key has expired */
#define KFI_EKEYREVOKED		EKEYREVOKED	/* key has been revoked */
#define KFI_EKEYREJECTED	EKEYREJECTED	/* key was rejected */
#define KFI_EOWNERDEAD		EOWNERDEAD	/* owner died */
#define KFI_ENOTRECOVERABLE	ENOTRECOVERABLE	/* state not recoverable */

/* First number that only kfabric has */
#define KFI_ERRNO_OFFSET	256

/**
 * enum - error numbers that only kfabric has
 * @KFI_EOTHER: unspecified error
 * @KFI_ETOOSMALL: buffer or array of the caller is too small
 * @KFI_EOPBADSTATE: object is in the wrong state for the call, such as
 *   posting to an endpoint that is not enabled
 * @KFI_EAVAIL: an error entry waits to be read with a readerr call, or a
 *   counter's error value changed while waiting on it
 * @KFI_EBADFLAGS: flag not known or not allowed here
 * @KFI_ENOEQ: an event queue is needed and none is bound
 * @KFI_EDOMAIN: object belongs to another domain
 * @KFI_ENOCQ: a completion queue or counter is needed and none is bound
 * @KFI_ECRC: checksum error
 * @KFI_ETRUNC: data was truncated
 * @KFI_ENOKEY: memory key is not available or used already
 * @KFI_ENOAV: an address vector is needed and none is bound
 * @KFI_EOVERRUN: queue overran, entries are lost
 * @KFI_ERRNO_MAX: one past the last number
 * @FI_ERRNO_MAX: the same under the name that kfabric 1.7 gave it
 */
enum {
	KFI_EOTHER = KFI_ERRNO_OFFSET,
	KFI_ETOOSMALL,
	KFI_EOPBADSTATE,
	KFI_EAVAIL,
	KFI_EBADFLAGS,
	KFI_ENOEQ,
	KFI_EDOMAIN,
	KFI_ENOCQ,
	KFI_ECRC,
	KFI_ETRUNC,
	KFI_ENOKEY,
	KFI_ENOAV,
	KFI_EOVERRUN,
	KFI_ERRNO_MAX,
	FI_ERRNO_MAX = KFI_ERRNO_MAX,
};

/**
 * kfi_strerror() - describe an error number
 * @errnum: error number, positive or negative
 *
 * Numbers specific to a provider (prov_errno of an error entry) are described
 * by kfi_cq_strerror() and kfi_eq_strerror() instead.
 *
 * Context: Any; does not sleep.
 *
 * Return: a constant string, never NULL; the caller does not free it. A number
 *   that is not known gives a text that says so.
 */
const char *kfi_strerror(int errnum);

#endif /* _KFI_ERRNO_H_ */
