// SPDX-License-Identifier: GPL-2.0
/*
 * Calls at the same time: deregistration while others run, replacement under
 * load, and everything at once for many rounds.
 */
#include <linux/delay.h>
#include <linux/module.h>

#include "mock.h"

static long ask_thread(void *name)
{
	return ask_and_free(name);
}

static long deregister_thread(void *mock)
{
	return mock_deregister(mock);
}

/* A provider leaves while another CPU is in its kgetinfo. */
static void deregister_waits(struct test *t)
{
	struct mock *mock = mock_init(0, "mock-1", 1);
	struct mock *other = mock_init(1, "mock-2", 1);
	struct mock *next = mock_init(2, "mock-1", 1);
	struct job asker, leaver;
	struct kfi_info *info;
	struct gate gate;

	gate_init(&gate);
	if (!expect(t, mock_register(mock), 0))
		return;
	expect(t, mock_register(other), 0);
	mock->gate = &gate;
	if (!job_start(t, &asker, ask_thread, "mock-1", some_cpu(0)))
		goto deregister;
	expect_true(t, happens_soon(&gate.reached));
	if (!job_start(t, &leaver, deregister_thread, mock, some_cpu(1))) {
		complete_all(&gate.opened);
		job_finish(&asker);
		goto deregister;
	}
	expect_true(t, job_is_waiting(&leaver));

	/* It is not there any more, and holds up nobody. */
	if (expect(t, ask(NULL, &info), 0)) {
		expect_answers(t, info, "mock-2");
		kfi_freeinfo(info);
	}
	expect(t, ask_and_free("mock-1"), -KFI_ENODATA);
	expect(t, open_and_close("mock-1"), -KFI_ENODEV);
	expect(t, open_and_close("mock-2"), 0);
	expect(t, mock_deregister(mock), -KFI_EINVAL);
	expect(t, mock_register(mock), -KFI_EEXIST);
	expect(t, atomic_read(&mock->cleaned), 0);
	/* Its name is free. */
	if (expect(t, mock_register(next), 0)) {
		expect(t, open_and_close("mock-1"), 0);
		expect(t, mock_deregister(next), 0);
	}
	expect_true(t, job_is_waiting(&leaver));

	/* The one that was asked still answers. */
	complete_all(&gate.opened);
	expect(t, job_finish(&asker), 0);
	expect(t, job_finish(&leaver), 0);
	expect(t, atomic_read(&mock->asked), 1);
	expect(t, atomic_read(&mock->cleaned), 1);
	expect(t, mock_deregister(other), 0);
	return;

deregister:
	mock_deregister(mock);
	mock_deregister(other);
}

/* A provider that takes its time keeps nobody else from leaving or coming. */
static void slow_getinfo(struct test *t)
{
	struct mock *slow = mock_init(0, "mock-1", 1);
	struct mock *other = mock_init(1, "mock-2", 1);
	struct mock *newer = mock_init(2, "mock-1", 2);
	struct job asker;
	struct gate gate;

	gate_init(&gate);
	if (!expect(t, mock_register(slow), 0))
		return;
	expect(t, mock_register(other), 0);
	slow->gate = &gate;
	if (job_start(t, &asker, ask_thread, NULL, some_cpu(1))) {
		expect_true(t, happens_soon(&gate.reached));
		expect(t, mock_deregister(other), 0);
		expect(t, mock_register(other), 0);
		expect(t, mock_register(newer), 0);
		expect(t, ask_and_free("mock-1"), 0);
		expect(t, open_and_close("mock-1"), 0);
		expect(t, mock_deregister(newer), 0);
		complete_all(&gate.opened);
		expect(t, job_finish(&asker), 0);
	}
	expect(t, atomic_read(&slow->asked), 1);
	expect(t, atomic_read(&newer->asked), 1);
	expect(t, mock_deregister(other), 0);
	expect(t, mock_deregister(slow), 0);
}

/* References are for everybody to take. */
static void deregister_waits_for_reference(struct test *t)
{
	struct mock *mock = mock_init(0, "mock", 1);
	struct job leaver;

	if (!expect(t, mock_register(mock), 0))
		return;
	kfi_ref_provider(&mock->provider);
	if (job_start(t, &leaver, deregister_thread, mock, some_cpu(1))) {
		expect_true(t, job_is_waiting(&leaver));
		expect(t, atomic_read(&mock->cleaned), 0);
		kfi_deref_provider(&mock->provider);
		expect(t, job_finish(&leaver), 0);
	} else {
		kfi_deref_provider(&mock->provider);
		mock_deregister(mock);
	}
	expect(t, atomic_read(&mock->cleaned), 1);
}

/**
 * struct race - two threads that do the same at the same time
 * @mocks: what each of them registers
 * @times: how many times
 * @arrived: how many times a thread has come to the line
 * @results: what the calls of both returned
 * @stop: give up
 */
struct race {
	struct mock *mocks[2];
	unsigned int times;
	atomic_t arrived;
	int results[2];
	bool stop;
};

/* Waits until both are here. */
static void line_up(struct race *race)
{
	int both = (atomic_inc_return(&race->arrived) + 1) / 2 * 2;

	while (atomic_read(&race->arrived) < both)
		cond_resched();
}

/* One of the racers; the first one keeps the score. */
static void run_race(struct test *t, struct race *race, unsigned int me)
{
	unsigned int i;

	for (i = 0; i < race->times; i++) {
		int won;

		line_up(race);
		race->results[me] = mock_register(race->mocks[me]);
		line_up(race);
		won = race->results[0] ? 1 : 0;
		if (!me) {
			race->stop = !expect(t, race->results[won], 0) ||
				     !expect(t, race->results[!won], -KFI_EEXIST);
			expect(t, ask_and_free(race->mocks[won]->provider.name), 0);
		}
		line_up(race);
		if (race->stop)
			break;
		race->results[me] = mock_deregister(race->mocks[won]);
		line_up(race);
		if (!me)
			expect(t, race->results[0] + race->results[1], -KFI_EINVAL);
	}
}

static long second_racer(void *race)
{
	run_race(NULL, race, 1);
	return 0;
}

/* Two threads register the same, and take it back: one of them succeeds. */
static void race(struct test *t, struct mock *first, struct mock *second)
{
	struct race race = {
		.mocks = { first, second },
		.times = min(rounds, 1000U),
	};
	struct job job;
	int cleaned;

	if (!job_start(t, &job, second_racer, &race, some_cpu(1)))
		return;
	run_race(t, &race, 0);
	job_finish(&job);
	cleaned = atomic_read(&first->cleaned);
	if (first != second)
		cleaned += atomic_read(&second->cleaned);
	expect(t, cleaned, race.times);
}

static void race_identity(struct test *t)
{
	struct mock *mock = mock_init(0, "mock", 1);

	race(t, mock, mock);
}

static void race_name(struct test *t)
{
	race(t, mock_init(0, "mock", 1), mock_init(1, "mock", 1));
}

/**
 * struct load - users of a name that must always be there
 * @stop: enough
 * @rounds: how many rounds were done
 * @failures: how many times it was not there, or there more than once
 */
struct load {
	bool stop;
	atomic_t rounds;
	atomic_t failures;
};

static long use_thread(void *arg)
{
	struct kfi_info *hints = hints_for("mock-load");
	struct load *load = arg;
	struct kfid_fabric *fabric;
	struct kfi_info *info;

	if (!hints)
		return -ENOMEM;
	while (!READ_ONCE(load->stop)) {
		if (kfi_getinfo(API_VERSION, NULL, NULL, 0, hints, &info)) {
			atomic_inc(&load->failures);
		} else {
			if (info->next)
				atomic_inc(&load->failures);
			kfi_freeinfo(info);
		}
		if (open_fabric_of("mock-load", &fabric)) {
			atomic_inc(&load->failures);
		} else {
			if (kfi_close(&fabric->fid))
				atomic_inc(&load->failures);
		}
		atomic_inc(&load->rounds);
		cond_resched();
	}
	kfi_freeinfo(hints);
	return 0;
}

/*
 * One version after the other replaces the one before, which then leaves.
 * Whoever uses the name always finds exactly one.
 */
static void replace_under_load(struct test *t)
{
	unsigned int i, started, times = max(rounds / 5, 20U);
	struct mock *mocks[2] = {
		mock_init(0, "mock-load", 1), mock_init(1, "mock-load", 1),
	};
	struct load load = {};
	struct job users[2];

	if (!expect(t, mock_register(mocks[0]), 0))
		return;
	for (started = 0; started < 2; started++) {
		if (!job_start(t, &users[started], use_thread, &load,
			       some_cpu(started)))
			break;
	}
	/* Until it was used as many times, if that does not take too long. */
	for (i = 1; i <= times ||
		    (atomic_read(&load.rounds) < times && i <= 20 * times); i++) {
		struct mock *old = mocks[(i - 1) % 2], *new = mocks[i % 2];

		new->provider.version = i + 1;
		if (!expect(t, mock_register(new), 0))
			break;
		if (i % 4 == 0)
			usleep_range(20, 200);
		expect(t, mock_deregister(old), 0);
		cond_resched();
	}
	WRITE_ONCE(load.stop, true);
	while (started)
		expect(t, job_finish(&users[--started]), 0);
	expect(t, mock_deregister(mocks[(i - 1) % 2]), 0);
	expect(t, atomic_read(&load.failures), 0);
	expect_true(t, atomic_read(&load.rounds));
	expect(t, atomic_read(&mocks[0]->cleaned) +
		  atomic_read(&mocks[1]->cleaned), i);
	expect(t, atomic_read(&mocks[0]->fabrics), 0);
	expect(t, atomic_read(&mocks[1]->fabrics), 0);
	pr_info("# %u replacements, %d uses meanwhile\n", i - 1,
		atomic_read(&load.rounds));
}

/**
 * struct player - one of two that do everything
 * @own: its provider
 * @others: name of the other one's provider
 * @hints: that name them
 * @step: what went wrong, if anything did
 * @found: how many times the other provider was there
 */
struct player {
	struct mock *own;
	const char *others;
	struct kfi_info *hints[2];
	const char *step;
	unsigned int found;
};

static int play_round(struct player *player, unsigned int round)
{
	const char *own = player->own->provider.name;
	/* Each round opens one of both and asks the other one. */
	bool opens_own = round & 1;
	/* The fabric is closed before or after its provider leaves. */
	bool leaves_first = round & 2;
	struct kfid_fabric *fabric = NULL;
	struct kfi_info *info;
	int ret;

	player->step = "register";
	ret = mock_register(player->own);
	if (ret)
		return ret;

	/* The other one may be there or not. */
	player->step = "getinfo";
	ret = kfi_getinfo(API_VERSION, NULL, NULL, 0,
			  player->hints[opens_own ? 1 : 0], &info);
	if (ret && !(opens_own && ret == -KFI_ENODATA))
		return ret;
	kfi_freeinfo(info);
	player->found += opens_own && !ret;
	player->step = "open";
	ret = open_fabric_of(opens_own ? own : player->others, &fabric);
	if (ret && !(!opens_own && ret == -KFI_ENODEV))
		return ret;
	player->found += !opens_own && !ret;
	if (round % 16 == 0) {
		player->step = "getinfo of all";
		ret = ask_and_free(NULL);
		if (ret)
			return ret;
	}

	player->step = "deregister";
	ret = leaves_first ? mock_deregister(player->own) : 0;
	if (ret)
		return ret;
	player->step = "close";
	ret = fabric ? kfi_close(&fabric->fid) : 0;
	if (ret)
		return ret;
	player->step = "deregister";
	return leaves_first ? 0 : mock_deregister(player->own);
}

static long play_thread(void *arg)
{
	struct player *player = arg;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < rounds && !ret; i++) {
		ret = play_round(player, i);
		cond_resched();
	}
	return ret;
}

static void all_at_once(struct test *t)
{
	static const char *const names[2] = { "mock-a", "mock-b" };
	struct player players[2] = {};
	struct job jobs[2];
	unsigned int i, started;

	for (i = 0; i < 2; i++) {
		players[i].own = mock_init(i, names[i], 1);
		players[i].others = names[!i];
		players[i].hints[0] = hints_for(names[i]);
		players[i].hints[1] = hints_for(names[!i]);
		expect_true(t, players[i].hints[0] && players[i].hints[1]);
	}
	for (started = 0; started < 2 && !t->failed; started++) {
		if (!job_start(t, &jobs[started], play_thread,
			       &players[started], some_cpu(started)))
			break;
	}
	for (i = 0; i < started; i++) {
		if (!expect(t, job_finish(&jobs[i]), 0))
			pr_info("# %s: %s\n", names[i], players[i].step);
	}
	for (i = 0; i < 2; i++) {
		kfi_freeinfo(players[i].hints[0]);
		kfi_freeinfo(players[i].hints[1]);
		expect(t, atomic_read(&players[i].own->cleaned), rounds);
		expect(t, atomic_read(&players[i].own->fabrics), 0);
		expect(t, atomic_read(&players[i].own->inside), 0);
	}
	pr_info("# %u rounds on each of 2 CPUs, met %u times\n", rounds,
		players[0].found + players[1].found);
}

const struct test_case thread_tests[] = {
	{ "concurrent/deregister-waits", "", deregister_waits },
	{ "concurrent/deregister-waits-for-reference", "",
	  deregister_waits_for_reference },
	{ "concurrent/slow-getinfo", "", slow_getinfo },
	{ "concurrent/race-identity", "", race_identity },
	{ "concurrent/race-name", "", race_name },
	{ "concurrent/replace-under-load", "", replace_under_load },
	{ "concurrent/all-at-once", "", all_at_once },
	{}
};
