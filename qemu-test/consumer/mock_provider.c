// SPDX-License-Identifier: GPL-2.0
/*
 * Providers that do as they are told, and what asks and opens them.
 */
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <kfi_enosys.h>

#include "mock.h"

static struct mock mocks[MOCKS];

void gate_init(struct gate *gate)
{
	init_completion(&gate->reached);
	init_completion(&gate->opened);
}

void gate_pass(struct gate *gate)
{
	complete(&gate->reached);
	wait_without_end(&gate->opened);
}

static int fabric_close(struct kfid *fid)
{
	struct mock_fabric *fabric =
		container_of(fid, struct mock_fabric, fabric.fid);

	if (fabric->busy)
		return -KFI_EBUSY;
	atomic_dec(&fabric->mock->fabrics);
	kfree(fabric);
	return 0;
}

static int fabric_control(struct kfid *fid, int command, void *arg)
{
	container_of(fid, struct mock_fabric, fabric.fid)->control = command;
	return 0;
}

static struct kfi_ops fabric_fid_ops = {
	.size = sizeof(struct kfi_ops),
	.close = fabric_close,
	.bind = kfi_no_bind,
	.control = fabric_control,
	.ops_open = kfi_no_ops_open,
};

static struct kfi_ops_fabric fabric_ops = {
	.size = sizeof(struct kfi_ops_fabric),
	.domain = kfi_no_domain,
	.passive_ep = kfi_no_passive_ep,
	.eq_open = kfi_no_eq_open,
	.wait_open = kfi_no_wait_open,
	.trywait = kfi_no_trywait,
};

int mock_open(struct mock *mock, struct kfid_fabric **fabric, void *context)
{
	struct mock_fabric *new = kzalloc_obj(*new);

	if (!new)
		return -KFI_ENOMEM;
	new->fabric.fid.fclass = KFI_CLASS_FABRIC;
	new->fabric.fid.context = context;
	new->fabric.fid.ops = &fabric_fid_ops;
	new->fabric.ops = &fabric_ops;
	new->mock = mock;
	atomic_inc(&mock->fabrics);
	*fabric = &new->fabric;
	return 0;
}

/* An entry of a list, or NULL; without a provider's name if that is NULL. */
static struct kfi_info *entry(const char *prov_name)
{
	struct kfi_info *info = kfi_allocinfo();
	struct kfi_fabric_attr *attr;

	if (!info)
		return NULL;
	attr = info->fabric_attr;
	attr->name = kstrdup("mock", GFP_KERNEL);
	attr->prov_name = kstrdup(prov_name, GFP_KERNEL);
	if (!attr->name || (prov_name && !attr->prov_name)) {
		kfi_freeinfo(info);
		return NULL;
	}
	return info;
}

int mock_answer_one(struct mock *mock, struct kfi_info **info)
{
	*info = entry(mock->provider.name);
	if (!*info)
		return -KFI_ENOMEM;
	(*info)->fabric_attr->prov_version = mock->provider.version;
	return 0;
}

int mock_answer_two(struct mock *mock, struct kfi_info **info)
{
	struct kfi_info *first = NULL, *second = NULL;

	if (mock_answer_one(mock, &first) || mock_answer_one(mock, &second)) {
		kfi_freeinfo(first);
		kfi_freeinfo(second);
		return -KFI_ENOMEM;
	}
	first->next = second;
	*info = first;
	return 0;
}

/* No answer, whatever it returns. */
int mock_answer_result(struct mock *mock, struct kfi_info **info)
{
	return mock->result;
}

/*
 * Three entries, of which the first and the last have no attributes of the
 * fabric; only the first of them if there is a result.
 */
int mock_answer_incomplete(struct mock *mock, struct kfi_info **info)
{
	struct kfi_info *bare = kzalloc_obj(*bare);

	if (!bare)
		return -KFI_ENOMEM;
	if (!mock->result) {
		if (mock_answer_one(mock, &bare->next)) {
			kfi_freeinfo(bare);
			return -KFI_ENOMEM;
		}
		/* If there is no memory for it, it is missing. */
		bare->next->next = kzalloc_obj(*bare);
	}
	*info = bare;
	return 0;
}

/* An entry without a name, one whose name is empty, and one that has it all. */
int mock_answer_unnamed(struct mock *mock, struct kfi_info **info)
{
	static const char *const names[] = { NULL, "", "mock-other" };
	struct kfi_info *list = NULL, **end = &list;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		*end = entry(names[i]);
		if (!*end) {
			kfi_freeinfo(list);
			return -KFI_ENOMEM;
		}
		if (i == ARRAY_SIZE(names) - 1) {
			(*end)->fabric_attr->prov_version = 77;
			(*end)->fabric_attr->api_version = KFI_VERSION(1, 1);
		}
		end = &(*end)->next;
	}
	*info = list;
	return 0;
}

static int mock_getinfo(struct mock *mock, struct kfi_info **info)
{
	int ret;

	atomic_inc(&mock->inside);
	atomic_inc(&mock->asked);
	if (mock->on_getinfo)
		mock->on_getinfo(mock);
	if (mock->gate)
		gate_pass(mock->gate);
	ret = mock->answer(mock, info);
	atomic_dec(&mock->inside);
	return ret;
}

static int mock_fabric(struct mock *mock, struct kfid_fabric **fabric,
		       void *context)
{
	int ret = mock->result;

	atomic_inc(&mock->inside);
	atomic_inc(&mock->opened);
	if (mock->on_fabric)
		mock->on_fabric(mock);
	if (!ret)
		ret = mock->opens(mock, fabric, context);
	atomic_dec(&mock->inside);
	return ret;
}

static void mock_cleanup(struct mock *mock)
{
	/* Too early if a callback still runs. */
	atomic_add(atomic_read(&mock->inside) ? 1000000 : 1, &mock->cleaned);
	if (mock->on_cleanup)
		mock->on_cleanup(mock);
}

/* Callbacks are not told whose they are, so each mock has its own. */
#define CALLBACKS(slot)							\
static int getinfo_##slot(uint32_t version, const char *node,		\
			  const char *service, uint64_t flags,		\
			  struct kfi_info *hints,			\
			  struct kfi_info **info)			\
{									\
	return mock_getinfo(&mocks[slot], info);			\
}									\
									\
static int fabric_##slot(struct kfi_fabric_attr *attr,			\
			 struct kfid_fabric **fabric, void *context)	\
{									\
	return mock_fabric(&mocks[slot], fabric, context);		\
}									\
									\
static void cleanup_##slot(void)					\
{									\
	mock_cleanup(&mocks[slot]);					\
}

CALLBACKS(0)
CALLBACKS(1)
CALLBACKS(2)
CALLBACKS(3)
CALLBACKS(4)
CALLBACKS(5)

#define PROVIDER(slot) {						\
	.kgetinfo = getinfo_##slot,					\
	.kfabric = fabric_##slot,					\
	.cleanup = cleanup_##slot,					\
}

static const struct kfi_provider providers[MOCKS] = {
	PROVIDER(0), PROVIDER(1), PROVIDER(2), PROVIDER(3), PROVIDER(4),
	PROVIDER(5),
};

/* A mock as new, which answers and opens. */
struct mock *mock_init(unsigned int slot, const char *name, uint32_t version)
{
	struct mock *mock = &mocks[slot];

	memset(mock, 0, sizeof(*mock));
	mock->provider = providers[slot];
	mock->provider.name = name;
	mock->provider.version = version;
	mock->provider.kfi_version = API_VERSION;
	/* The members that the core sets up may have any content before. */
	memset(&mock->provider.comp, 0x5a, sizeof(mock->provider.comp));
	memset(&mock->provider.ref_cnt, 0x5a, sizeof(mock->provider.ref_cnt));
	mock->answer = mock_answer_one;
	mock->opens = mock_open;
	return mock;
}

int mock_register(struct mock *mock)
{
	return kfi_provider_register(&mock->provider);
}

int mock_deregister(struct mock *mock)
{
	return kfi_provider_deregister(&mock->provider);
}

/* Hints that name a provider, or NULL. */
struct kfi_info *hints_for(const char *prov_name)
{
	struct kfi_info *hints = kfi_allocinfo();

	if (!hints)
		return NULL;
	hints->fabric_attr->prov_name = kstrdup(prov_name, GFP_KERNEL);
	if (!hints->fabric_attr->prov_name) {
		kfi_freeinfo(hints);
		return NULL;
	}
	return hints;
}

/* Asks one provider, or all if there is no name. */
int ask(const char *prov_name, struct kfi_info **info)
{
	struct kfi_info *hints = NULL;
	int ret;

	if (prov_name) {
		hints = hints_for(prov_name);
		if (!hints)
			return -KFI_ENOMEM;
	}
	ret = kfi_getinfo(API_VERSION, NULL, NULL, 0, hints, info);
	kfi_freeinfo(hints);
	return ret;
}

int ask_and_free(const char *prov_name)
{
	struct kfi_info *info = NULL;
	int ret = ask(prov_name, &info);

	kfi_freeinfo(info);
	return ret;
}

int open_fabric_of(const char *prov_name, struct kfid_fabric **fabric)
{
	struct kfi_fabric_attr attr = {
		.prov_name = (char *)prov_name,
		.name = "mock",
	};

	*fabric = NULL;
	return kfi_fabric(&attr, fabric, NULL);
}

int open_and_close(const char *prov_name)
{
	struct kfid_fabric *fabric;
	int ret = open_fabric_of(prov_name, &fabric);

	return ret ?: kfi_close(&fabric->fid);
}

static bool is_mock(const struct kfi_info *info)
{
	return info->fabric_attr && info->fabric_attr->prov_name &&
	       strstarts(info->fabric_attr->prov_name, "mock");
}

/* Whether there are other providers than mocks. */
bool others_answer(void)
{
	struct kfi_info *info = NULL, *entry;
	bool others = false;

	ask(NULL, &info);
	for (entry = info; entry; entry = entry->next)
		others |= !is_mock(entry);
	kfi_freeinfo(info);
	return others;
}

bool expect_answers_at(struct test *t, const struct kfi_info *info,
		       const char *want, const char *file, int line)
{
	const struct kfi_info *entry;
	char names[160] = "";

	for (entry = info; entry; entry = entry->next) {
		if (!entry->fabric_attr || !entry->fabric_attr->prov_name)
			strlcat(names, "nobody ", sizeof(names));
		if (!is_mock(entry))
			continue;
		strlcat(names, entry->fabric_attr->prov_name, sizeof(names));
		strlcat(names, " ", sizeof(names));
	}
	if (!strcmp(strim(names), want))
		return true;
	t->failed = true;
	pr_info("# %s:%d: the answers are \"%s\", expected \"%s\"\n",
		kbasename(file), line, names, want);
	return false;
}
