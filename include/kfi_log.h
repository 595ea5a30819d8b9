/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kfabric: log macros.
 */

#ifndef _KFI_LOG_H_
#define _KFI_LOG_H_

#include <linux/printk.h>
#include <linux/ratelimit.h>

/**
 * DOC: Log macros
 *
 * They print one line that starts with MODULE_NAME and add the newline. Those
 * for trouble, and LOG_DEBUG(), also give the function and the line of the
 * source. A file that wants another name defines MODULE_NAME, a string literal,
 * before it includes this header. The macros go through the pr_* functions, so
 * a pr_fmt() of the file's own applies as well, and LOG_DEBUG() is controlled
 * by dynamic debug.
 *
 * All may be used in any context in which printk() may.
 */
#ifndef MODULE_NAME
#define MODULE_NAME	"KFI"
#endif

/**
 * LOG_DEBUG() - print a message at debug level
 * @fmt: format, a string literal without newline
 */
#define LOG_DEBUG(fmt, ...)						\
	pr_debug(MODULE_NAME ": %s:%d: " fmt "\n",			\
		 __func__, __LINE__, ##__VA_ARGS__)

/**
 * LOG_DEFAULT() - print a message at the default level
 * @fmt: format, a string literal without newline
 */
#define LOG_DEFAULT(fmt, ...)						\
	printk(KERN_DEFAULT pr_fmt(MODULE_NAME ": " fmt "\n"), ##__VA_ARGS__)

/**
 * LOG_INFO() - print a message at info level
 * @fmt: format, a string literal without newline
 */
#define LOG_INFO(fmt, ...)						\
	pr_info(MODULE_NAME ": " fmt "\n", ##__VA_ARGS__)

/**
 * LOG_NOTICE() - print a message at notice level
 * @fmt: format, a string literal without newline
 */
#define LOG_NOTICE(fmt, ...)						\
	pr_notice(MODULE_NAME ": " fmt "\n", ##__VA_ARGS__)

/**
 * LOG_WARN() - print a message at warning level
 * @fmt: format, a string literal without newline
 */
#define LOG_WARN(fmt, ...)						\
	pr_warn(MODULE_NAME ": %s:%d: " fmt "\n",			\
		__func__, __LINE__, ##__VA_ARGS__)

/**
 * LOG_ERR() - print a message at error level
 * @fmt: format, a string literal without newline
 */
#define LOG_ERR(fmt, ...)						\
	pr_err(MODULE_NAME ": %s:%d: " fmt "\n",			\
	       __func__, __LINE__, ##__VA_ARGS__)

/**
 * LOG_ERR_RL() - print a message at error level, unless there were too many
 * @fmt: format, a string literal without newline
 */
#define LOG_ERR_RL(fmt, ...)						\
	pr_err_ratelimited(MODULE_NAME ": %s:%d: " fmt "\n",		\
			   __func__, __LINE__, ##__VA_ARGS__)

/**
 * LOG_CRIT() - print a message at critical level
 * @fmt: format, a string literal without newline
 */
#define LOG_CRIT(fmt, ...)						\
	pr_crit(MODULE_NAME ": %s:%d: " fmt "\n",			\
		__func__, __LINE__, ##__VA_ARGS__)

/**
 * LOG_ALERT() - print a message at alert level
 * @fmt: format, a string literal without newline
 */
#define LOG_ALERT(fmt, ...)						\
	pr_alert(MODULE_NAME ": %s:%d: " fmt "\n",			\
		 __func__, __LINE__, ##__VA_ARGS__)

/**
 * LOG_EMERG() - print a message at emergency level
 * @fmt: format, a string literal without newline
 */
#define LOG_EMERG(fmt, ...)						\
	pr_emerg(MODULE_NAME ": %s:%d: " fmt "\n",			\
		 __func__, __LINE__, ##__VA_ARGS__)

#endif /* _KFI_LOG_H_ */
