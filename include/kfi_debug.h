/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kfabric: debug output of a module, by topic.
 */

/* The guard is part of the API; mind that it is a common name */
#ifndef DEBUG_H
#define DEBUG_H

#include <linux/moduleparam.h>
#include <linux/printk.h>

/**
 * DOC: Debug output
 *
 * With CONFIG_KFI_DEBUG a module has a variable ``unsigned int
 * kfi_debug_level`` (global, defined by one of its files) whose bits select
 * what PRINTK() and the macros on top of it print. Without it they print
 * nothing and cost nothing, but their arguments are still checked against the
 * format.
 *
 * The macros add no newline.
 */

/**
 * enum - topics, and levels made of them
 * @DEBUG_NONE: nothing
 * @DEBUG_LOW: what happens seldom
 * @DEBUG_MED: what happens now and then
 * @DEBUG_HIGH: what happens often
 * @DEBUG_TRACE: entry and exit of functions
 * @DEBUG_NEXT: first bit that is free for a module's own topics
 * @DEBUG_LEVEL_LOW: level: little
 * @DEBUG_LEVEL_MED: level: more
 * @DEBUG_LEVEL_HI: level: all but the trace
 */
enum {
	DEBUG_NONE = 0x00,
	DEBUG_LOW = 0x01,
	DEBUG_MED = 0x02,
	DEBUG_HIGH = 0x04,
	DEBUG_TRACE = 0x08,
	DEBUG_NEXT = 0x10,
	DEBUG_LEVEL_LOW = DEBUG_LOW,
	DEBUG_LEVEL_MED = DEBUG_LOW | DEBUG_MED,
	DEBUG_LEVEL_HI = DEBUG_LOW | DEBUG_MED | DEBUG_HIGH,
};

/**
 * MODULE_PARAM() - define a variable that is a module parameter
 * @name: name of the parameter
 * @var: name of the variable
 * @type: type, one that both C and module_param() know: int, uint, bool and so
 *   on
 * @value: initial value
 * @desc: description, a string literal
 *
 * For use at file scope. The variable is global. Root can change the parameter
 * at run time.
 */
#define MODULE_PARAM(name, var, type, value, desc)			\
	type var = (value);						\
	module_param_named(name, var, type, 0644);			\
	MODULE_PARM_DESC(name, desc)

/**
 * _PRINTK() - print a message at a given level
 * @l: level, KERN_ERR and the like
 * @f: format, a string literal
 */
#define _PRINTK(l, f, ...)	printk(l f, ##__VA_ARGS__)

#ifdef CONFIG_KFI_DEBUG

extern unsigned int kfi_debug_level;

/**
 * set_debug_level() - choose what is printed
 * @val: topics; all others are switched off
 */
#define set_debug_level(val)	((void)(kfi_debug_level = (val)))

/**
 * update_debug_level() - print more
 * @val: topics to be added
 */
#define update_debug_level(val)	((void)(kfi_debug_level |= (val)))

/**
 * PRINTK() - print a message if its topic is chosen
 * @dbg: topics that the message belongs to
 * @f: format, a string literal
 */
#define PRINTK(dbg, f, ...)						\
	do {								\
		if (kfi_debug_level & (dbg))				\
			_PRINTK(KERN_DEBUG, f, ##__VA_ARGS__);		\
	} while (0)

#else /* CONFIG_KFI_DEBUG */

#define set_debug_level(val)	((void)sizeof(val))
#define update_debug_level(val)	((void)sizeof(val))
#define PRINTK(dbg, f, ...)						\
	do {								\
		(void)sizeof(dbg);					\
		no_printk(KERN_DEBUG f, ##__VA_ARGS__);			\
	} while (0)

#endif /* CONFIG_KFI_DEBUG */

/**
 * print_info() - print a message at info level
 * @f: format, a string literal
 */
#define print_info(f, ...)	pr_info(f, ##__VA_ARGS__)

/**
 * print_err() - print a message at error level
 * @f: format, a string literal
 */
#define print_err(f, ...)	_PRINTK(KERN_ERR, f, ##__VA_ARGS__)

/**
 * print_msg() - print a message at notice level
 * @f: format, a string literal
 */
#define print_msg(f, ...)	_PRINTK(KERN_NOTICE, f, ##__VA_ARGS__)

/**
 * dprint() - print a message if its topic is chosen
 * @mask: topics that the message belongs to
 * @f: format, a string literal
 */
#define dprint(mask, f, ...)	PRINTK(mask, f, ##__VA_ARGS__)

/**
 * print_dbg() - print a message of the topic DEBUG_LOW
 * @f: format, a string literal
 */
#define print_dbg(f, ...)	PRINTK(DEBUG_LOW, f, ##__VA_ARGS__)

/**
 * print_trace() - print a message of the topic DEBUG_TRACE
 * @f: format, a string literal
 */
#define print_trace(f, ...)	PRINTK(DEBUG_TRACE, f, ##__VA_ARGS__)

#endif /* DEBUG_H */
