/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kfabric: endpoint names, connections and multicast.
 */

#ifndef _KFI_CM_H_
#define _KFI_CM_H_

#include <linux/container_of.h>

#include "kfi_endpoint.h"
#include "kfi_errno.h"

/**
 * DOC: Addresses and connections
 *
 * Names of endpoints, connections of KFI_EP_MSG endpoints and multicast groups.
 * Everything here runs in process context and may sleep. Addresses and
 * parameter data are the caller's and are copied. A provider of connectionless
 * endpoints has kfi_setname() and kfi_getname() only and answers -KFI_ENOSYS to
 * the rest.
 */

/**
 * struct kfid_mc - multicast group an endpoint has joined
 * @fid: object head; closing it leaves the group
 * @addr: address of the group, read it with kfi_mc_addr()
 */
struct kfid_mc {
	struct kfid fid;
	kfi_addr_t addr;
};

/**
 * struct kfi_ops_cm - addressing and connection operations of an endpoint
 * @size: sizeof(struct kfi_ops_cm) the provider was built with, in bytes
 * @setname: set the source address of an endpoint; see kfi_setname()
 * @getname: source address of an endpoint; see kfi_getname()
 * @getpeer: address of the connected peer; see kfi_getpeer()
 * @connect: request a connection; see kfi_connect()
 * @listen: start to listen for connection requests; see kfi_listen()
 * @accept: accept a connection request; see kfi_accept()
 * @reject: reject a connection request; see kfi_reject()
 * @shutdown: end a connection; see kfi_shutdown()
 * @join: join a multicast group; see kfi_join()
 *
 * All members are called in process context and may sleep.
 */
struct kfi_ops_cm {
	size_t size;
	int (*setname)(kfid_t fid, void *addr, size_t addrlen);
	int (*getname)(struct kfid *fid, void *addr, size_t *addrlen);
	int (*getpeer)(struct kfid_ep *ep, void *addr, size_t *addrlen);
	int (*connect)(struct kfid_ep *ep, const void *addr, const void *param,
		       size_t paramlen);
	int (*listen)(struct kfid_pep *pep);
	int (*accept)(struct kfid_ep *ep, const void *param, size_t paramlen);
	int (*reject)(struct kfid_pep *pep, kfid_t handle, const void *param,
		      size_t paramlen);
	int (*shutdown)(struct kfid_ep *ep, uint64_t flags);
	int (*join)(struct kfid_ep *ep, const void *addr, uint64_t flags,
		    struct kfid_mc **mc, void *context);
};

/**
 * kfi_setname() - set the source address of an endpoint
 * @fid: fid of an endpoint, scalable endpoint or passive endpoint
 * @addr: address in the endpoint's format, the caller's; only read, though not
 *   const in kfabric 1.7
 * @addrlen: bytes at @addr
 *
 * Before kfi_enable() or kfi_listen(), and of a scalable endpoint before its
 * contexts are opened, which have its address. The address that it has is not
 * in use by another.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL; -KFI_EADDRINUSE; -KFI_EADDRNOTAVAIL; -KFI_EOPBADSTATE
 *   if the endpoint is active; -KFI_EBUSY if contexts of it are open.
 */
static inline int kfi_setname(struct kfid *fid, void *addr, size_t addrlen)
{
	struct kfid_ep *ep = container_of(fid, struct kfid_ep, fid);

	return ep->cm->setname(fid, addr, addrlen);
}

/**
 * kfi_getname() - source address of an endpoint
 * @fid: fid of an endpoint, scalable endpoint or passive endpoint
 * @addr: buffer of the caller's
 * @addrlen: in: bytes at @addr; out: length of the address in bytes
 *
 * An endpoint opened without a port has one assigned by then.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_ETOOSMALL if the room was short: the leading bytes are
 *   written and @addrlen holds the length needed; -KFI_EADDRNOTAVAIL if there
 *   is no address yet.
 */
static inline int kfi_getname(struct kfid *fid, void *addr, size_t *addrlen)
{
	struct kfid_ep *ep = container_of(fid, struct kfid_ep, fid);

	return ep->cm->getname(fid, addr, addrlen);
}

/**
 * kfi_getpeer() - address of the connected peer
 * @ep: connected endpoint
 * @addr: buffer of the caller's
 * @addrlen: in: bytes at @addr; out: length of the address in bytes
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_ETOOSMALL if the room was short: the leading bytes are
 *   written and @addrlen holds the length needed; -KFI_EADDRNOTAVAIL if there
 *   is no address yet. -KFI_ENOTCONN.
 */
static inline int kfi_getpeer(struct kfid_ep *ep, void *addr, size_t *addrlen)
{
	return ep->cm->getpeer(ep, addr, addrlen);
}

/**
 * kfi_listen() - start to listen for connection requests
 * @pep: passive endpoint
 *
 * Requests arrive as KFI_CONNREQ events.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_ENOEQ if no event queue is bound; -KFI_EINVAL.
 */
static inline int kfi_listen(struct kfid_pep *pep)
{
	return pep->cm->listen(pep);
}

/**
 * kfi_connect() - request a connection
 * @ep: endpoint
 * @addr: address of the passive endpoint, the caller's
 * @param: data for the peer, the caller's, or NULL
 * @paramlen: bytes at @param, at most KFI_OPT_CM_DATA_SIZE
 *
 * Ends with a KFI_CONNECTED event, or an error entry on the event queue.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0 if started; -KFI_EISCONN; -KFI_ENOEQ; -KFI_EINVAL.
 */
static inline int kfi_connect(struct kfid_ep *ep, const void *addr,
			      const void *param, size_t paramlen)
{
	return ep->cm->connect(ep, addr, param, paramlen);
}

/**
 * kfi_accept() - accept a connection request
 * @ep: endpoint opened for the request
 * @param: data for the peer, the caller's, or NULL
 * @paramlen: bytes at @param, at most KFI_OPT_CM_DATA_SIZE
 *
 * Ends with a KFI_CONNECTED event. The endpoint is one opened with the info of
 * the KFI_CONNREQ event.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0 if started; -KFI_EINVAL.
 */
static inline int kfi_accept(struct kfid_ep *ep, const void *param,
			     size_t paramlen)
{
	return ep->cm->accept(ep, param, paramlen);
}

/**
 * kfi_reject() - reject a connection request
 * @pep: passive endpoint the request came in on
 * @connreq: handle of the request, from the info of the KFI_CONNREQ event
 * @param: data for the peer, the caller's, or NULL
 * @paramlen: bytes at @param, at most KFI_OPT_CM_DATA_SIZE
 *
 * Releases the request: @connreq is invalid after success.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_EINVAL.
 */
static inline int kfi_reject(struct kfid_pep *pep, kfid_t connreq,
			     const void *param, size_t paramlen)
{
	return pep->cm->reject(pep, connreq, param, paramlen);
}

/**
 * kfi_shutdown() - end a connection
 * @ep: connected endpoint
 * @flags: reserved, must be 0
 *
 * Operations in flight complete, in error if they must; the peer gets a
 * KFI_SHUTDOWN event.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0; -KFI_ENOTCONN.
 */
static inline int kfi_shutdown(struct kfid_ep *ep, uint64_t flags)
{
	return ep->cm->shutdown(ep, flags);
}

/**
 * kfi_join() - join a multicast group
 * @ep: endpoint
 * @addr: group address, the caller's
 * @flags: KFI_SEND or KFI_RECV to join in one direction only; 0 for both
 * @mc: receives the group
 * @context: caller's value, stored in the group's fid.context
 *
 * Ends with a KFI_JOIN_COMPLETE event. Close &kfid_mc.fid to leave the group.
 *
 * Context: Process context; may sleep.
 *
 * Return: 0 if started; -KFI_ENOSYS if the provider has no multicast, also if
 *   its ops table is too short to have the slot; -KFI_EINVAL.
 */
static inline int kfi_join(struct kfid_ep *ep, const void *addr, uint64_t flags,
			   struct kfid_mc **mc, void *context)
{
	return KFI_CHECK_OP(ep->cm, struct kfi_ops_cm, join) ?
		ep->cm->join(ep, addr, flags, mc, context) : -KFI_ENOSYS;
}

/**
 * kfi_mc_addr() - address of a joined multicast group
 * @mc: multicast group
 *
 * Context: Any context.
 *
 * Return: the address to send to, valid after the KFI_JOIN_COMPLETE event.
 */
static inline kfi_addr_t kfi_mc_addr(struct kfid_mc *mc)
{
	return mc->addr;
}

#endif /* _KFI_CM_H_ */
