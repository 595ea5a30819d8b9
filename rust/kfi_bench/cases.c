// SPDX-License-Identifier: GPL-2.0
/*
 * All cases, and those that were asked for.
 */
#include <linux/moduleparam.h>
#include <linux/sprintf.h>
#include <linux/string.h>

#include "rig.h"

/* Of the longest name of a figure, and more. */
#define NAME_SIZE 128

static char *items = "";
module_param(items, charp, 0444);
MODULE_PARM_DESC(items, "Measure only items whose names contain one of these words, joined by commas");

static char *figures = "";
module_param(figures, charp, 0444);
MODULE_PARM_DESC(figures, "Measure only these figures, each ITEM/DESIGN/SIZE, joined by semicolons; then items do not count");

static unsigned int rounds = 7;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "Rounds that count, after one that does not (default 7)");

static char *set = "node";
module_param(set, charp, 0444);
MODULE_PARM_DESC(set, "Which cases are measured: node (all within one, the default), tcp (two NICs that reach each other over TCP) or mesh (64 of these)");

static const struct kfi_bench_case *const node_lists[] = {
	bench_counter_cases, bench_trigger_cases, bench_wait_cases, bench_message_cases,
	bench_memory_cases, bench_scale_cases, NULL
};

static const struct kfi_bench_case *const tcp_lists[] = { bench_tcp_cases, NULL };
static const struct kfi_bench_case *const mesh_lists[] = { bench_mesh_cases, NULL };

/* Each wants a provider of its own, so they are not measured together. */
static const struct {
	const char *name;
	const struct kfi_bench_case *const *lists;
} sets[] = {
	{ "node", node_lists },
	{ "tcp", tcp_lists },
	{ "mesh", mesh_lists },
};

/* The lists of the set, or NULL if there is none of that name. */
static const struct kfi_bench_case *const *lists(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sets); i++) {
		if (!strcmp(sets[i].name, set))
			return sets[i].lists;
	}
	return NULL;
}

bool bench_has_set(void)
{
	return lists();
}

u32 kfi_bench_rounds(void)
{
	/* All of them go into one line of the log. */
	return clamp(rounds, 1U, 50U);
}

/* Whether one of the names in the parameter is that of the case. */
static bool named(const struct kfi_bench_case *c)
{
	const char *name = figures, *end;
	char own[NAME_SIZE];
	size_t len;

	len = scnprintf(own, sizeof(own), "%s/%s/%llu", c->item, c->design, c->size);
	for (;; name = end + 1) {
		end = strchrnul(name, ';');
		if (end - name == len && !strncmp(name, own, len))
			return true;
		if (!*end)
			return false;
	}
}

static bool wanted(const struct kfi_bench_case *c)
{
	const char *word = items, *end, *at;
	size_t len;

	if (*figures)
		return named(c);
	if (!*items)
		return true;
	for (;; word = end + 1) {
		end = strchrnul(word, ',');
		len = end - word;
		for (at = c->item; len && *at; at++) {
			if (!strncmp(at, word, len))
				return true;
		}
		if (!*end)
			return false;
	}
}

/* The case with this number of those that are wanted, or NULL. */
const struct kfi_bench_case *kfi_bench_case(size_t index)
{
	const struct kfi_bench_case *const *list = lists();
	const struct kfi_bench_case *c;

	for (; list && *list; list++) {
		for (c = *list; c->item; c++) {
			if (wanted(c) && !index--)
				return c;
		}
	}
	return NULL;
}
