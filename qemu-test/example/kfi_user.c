// SPDX-License-Identifier: GPL-2.0
/*
 * A small program for /dev/kfi: one counter is raised, and when it has reached a threshold, deferred
 * work adds to another one, for which the program waits.
 *
 * usage: kfi_user [PROVIDER]
 */
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The numbers of kfabric: KFI_WAIT_NONE and so on, KFI_OP_CNTR_ADD. */
#include <kfabric.h>
#include <kfi_eq.h>
#include <kfi_trigger.h>
/* The requests. */
#include <uapi/kfi_shim.h>

static int fd;

/*
 * The system call fails if the request cannot be carried to kfabric. What kfabric has answered is in
 * the structure: 0, or a negative errno, some of which Linux does not have (`kfi errno NUMBER`). The
 * program may end with all open: it is closed with the file.
 */
static void request(const char *name, unsigned long number, void *arg, const __s32 *result)
{
	if (ioctl(fd, number, arg))
		err(1, "%s", name);
	if (*result)
		errx(1, "%s: kfabric answers %d", name, *result);
}

#define REQUEST(number, arg)	request(#number, number, arg, &(arg)->result)

static __u32 open_counter(__u32 domain, enum kfi_wait_obj wait_obj)
{
	struct kfi_shim_cntr_open open = { .domain = domain, .wait_obj = wait_obj };

	REQUEST(KFI_SHIM_CNTR_OPEN, &open);
	return open.cntr;
}

static void add(__u32 cntr, __u64 value)
{
	struct kfi_shim_cntr add = { .cntr = cntr, .value = value };

	REQUEST(KFI_SHIM_CNTR_ADD, &add);
}

static unsigned long long value_of(__u32 cntr)
{
	struct kfi_shim_cntr read = { .cntr = cntr };

	REQUEST(KFI_SHIM_CNTR_READ, &read);
	return read.value;
}

static void close_handle(__u32 handle)
{
	struct kfi_shim_close close = { .handle = handle };

	REQUEST(KFI_SHIM_CLOSE, &close);
}

static void add_when_reached(const char *name, __u32 domain)
{
	/* Nobody waits for the first one. For the second one the provider chooses how. */
	__u32 trigger = open_counter(domain, KFI_WAIT_NONE);
	__u32 target = open_counter(domain, KFI_WAIT_UNSPEC);
	struct kfi_shim_work work = {
		.domain = domain,
		.triggering_cntr = trigger,
		.threshold = 3,
		.op_type = KFI_OP_CNTR_ADD,
		.cntr = target,
		.value = 5,
	};
	struct kfi_shim_cntr_wait wait = { .cntr = target, .threshold = 5, .timeout = 10000 };

	/* The kernel keeps the work, so the structure is free again. */
	REQUEST(KFI_SHIM_QUEUE_WORK, &work);
	add(trigger, 1);
	printf("%s: trigger %llu, target %llu\n", name, value_of(trigger), value_of(target));

	/* Fires the work, which may end a little later. */
	add(trigger, 2);
	REQUEST(KFI_SHIM_CNTR_WAIT, &wait);
	printf("%s: trigger %llu, target %llu\n", name, value_of(trigger), value_of(target));

	close_handle(target);
	close_handle(trigger);
}

int main(int argc, char **argv)
{
	/* Of hints, what is 0 asks for nothing. */
	struct kfi_shim_info hints = { 0 }, info;
	struct kfi_shim_getinfo getinfo = { .version = KFI_VERSION(1, 7) };
	struct kfi_shim_read_info read_info = { 0 };
	struct kfi_shim_fabric fabric = { 0 };
	struct kfi_shim_domain domain = { 0 };

	fd = open("/dev/kfi", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		err(1, "/dev/kfi");

	if (argc > 1) {
		snprintf(hints.fabric_attr.prov_name, sizeof(hints.fabric_attr.prov_name), "%s",
			 argv[1]);
		/* Addresses are numbers of 64 bits, for programs of 32 bits as well. */
		getinfo.hints = (uintptr_t)&hints;
		getinfo.hints_size = sizeof(hints);
	}
	REQUEST(KFI_SHIM_GETINFO, &getinfo);

	/* Of the entries of the answer the first one. This request has no result of kfabric. */
	read_info.info = getinfo.info;
	read_info.buffer = (uintptr_t)&info;
	read_info.buffer_size = sizeof(info);
	if (ioctl(fd, KFI_SHIM_READ_INFO, &read_info))
		err(1, "KFI_SHIM_READ_INFO");

	fabric.info = getinfo.info;
	REQUEST(KFI_SHIM_FABRIC, &fabric);
	domain.fabric = fabric.fabric;
	domain.info = getinfo.info;
	REQUEST(KFI_SHIM_DOMAIN, &domain);

	add_when_reached(info.domain_attr.name, domain.domain);

	/* The work, too, goes with the domain. */
	close_handle(domain.domain);
	close_handle(fabric.fabric);
	close_handle(getinfo.info);
	if (close(fd))
		err(1, "/dev/kfi");
	/* The output may still be in memory. */
	if (fflush(stdout))
		err(1, "stdout");
	return 0;
}
