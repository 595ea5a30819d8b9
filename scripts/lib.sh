# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Functions shared by the scripts of this folder. Source it; it runs nothing.
# Everything meant for people goes to stderr, stdout is for results.

# The variables scripts/setup finds out and everything else builds with.
# shellcheck disable=SC2034 # used by those who source this
KFI_TOOL_VARS=(LLVM RUSTC HOSTRUSTC RUSTDOC RUSTFMT CLIPPY_DRIVER BINDGEN
	CARGO QEMU BUSYBOX PYTHON)

say()
{
	printf '%s\n' "$*" >&2
}

die()
{
	say "${0##*/}: $*"
	exit 1
}

# The cache folder, in $cache. Kbuild cannot work in a folder whose name make
# or a shell would take apart, so such a name is refused here, once.
find_cache()
{
	local base=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}

	[[ $base == /* ]] ||
		die "set HOME, or XDG_CACHE_HOME to an absolute path"
	cache=$base/kfabric
	if ! plain_path "$cache"; then
		say "${0##*/}: the kernel's build cannot work in a folder with such a name: $cache"
		die "set XDG_CACHE_HOME to a path without spaces and special characters"
	fi
}

plain_path()
{
	local special='[][:space:]:;#$%&|<>(){}*?!"'\''`\[]'

	[[ ! $1 =~ $special ]]
}

# version_ge 1.96.0 1.85: is the first at least the second? Up to three numbers;
# what follows them ("-nightly", "+dfsg1") does not count.
version_ge()
{
	local -a a b
	local i

	IFS=. read -ra a <<<"${1%%[!0-9.]*}"
	IFS=. read -ra b <<<"${2%%[!0-9.]*}"
	for i in 0 1 2; do
		((10#0${a[i]:-} > 10#0${b[i]:-})) && return 0
		((10#0${a[i]:-} < 10#0${b[i]:-})) && return 1
	done
	return 0
}

# Reads a file of `NAME := value` lines as scripts/setup writes it into
# variables; knows only the names of KFI_TOOL_VARS.
read_toolchain()
{
	local name op value known

	while read -r name op value; do
		[[ $op == ':=' ]] || continue
		for known in "${KFI_TOOL_VARS[@]}"; do
			if [[ $name == "$known" ]]; then
				printf -v "$name" %s "$value"
			fi
		done
	done <"$1"
}

# llvm_program LLVM NAME: what program NAME of that LLVM is called; LLVM as the
# kernel's build takes it (1, -19 or a folder/).
llvm_program()
{
	case $1 in
	1) echo "$2" ;;
	-*) echo "$2$1" ;;
	*/) echo "$1$2" ;;
	*) return 1 ;;
	esac
}

# same_llvm RUST CLANG LLVM: can C be inlined into Rust, by a rustc whose LLVM is of
# version RUST and a clang of version CLANG? As RUSTC_CLANG_LLVM_COMPATIBLE of the
# kernel: the major versions count. And the linker for both is to be there.
same_llvm()
{
	[[ $1 && ${1%%.*} == "${2%%.*}" ]] &&
		type -P -- "$(llvm_program "$3" llvm-link)" >/dev/null
}

# write_if_changed FILE <text: replaces FILE in one step, and only if it would
# differ, so that make sees no news where there are none.
write_if_changed()
{
	local new

	new=$(mktemp "$1.XXXXXX")
	cat >"$new"
	chmod 644 "$new"
	if cmp -s "$new" "$1"; then
		rm -f "$new"
	else
		mv -f "$new" "$1"
	fi
}

# take_lock NAME: serialises with other runs of these scripts. The lock is held
# by the open descriptor, which children inherit: a build that outlives a killed
# script still keeps others out.
take_lock()
{
	mkdir -p "$cache/locks"
	exec {lock_fd}>"$cache/locks/$1"
	if ! flock -n "$lock_fd"; then
		say "waiting: $2"
		flock "$lock_fd"
	fi
}

drop_lock()
{
	exec {lock_fd}>&-
}

# run_long WHAT LOG COMMAND...: runs COMMAND with its output in LOG and shows
# that it is alive: on a terminal a line that changes, elsewhere a line every
# 20 s. If it fails, the end of LOG is shown. A signal that ends the script ends
# the command with all its children; $run_signal is then set.
#
# With run_whole=1 the command is not interrupted but waited for: a package
# manager should not be stopped halfway.
run_long()
{
	local what=$1 log=$2 status=0 start=$SECONDS next=20 every=1 fd
	local -a group=(setsid)

	shift 2
	if [[ ${run_whole:-} ]]; then
		# A service that a package starts must not keep our lock.
		group=(without_lock)
	fi
	run_signal=
	trap 'run_signal=INT' INT
	trap 'run_signal=TERM' TERM
	trap 'run_signal=HUP' HUP
	"${group[@]}" "$@" >"$log" 2>&1 </dev/null &
	run_pid=$!
	# Reading from a pipe nobody writes to is a sleep without a process.
	exec {fd}<> <(:)
	while [[ -d /proc/$run_pid ]]; do
		read -r -t 0.2 -u "$fd" _ || :
		if [[ $run_signal && ! ${run_whole:-} ]]; then
			kill -TERM -- "-$run_pid" 2>/dev/null || :
			break
		fi
		if [[ -t 2 ]]; then
			if ((SECONDS - start >= every)); then
				show_progress '\r' "$what" "$log" $((SECONDS - start))
				every=$((SECONDS - start + 1))
			fi
		elif ((SECONDS - start >= next)); then
			show_progress '' "$what" "$log" $((SECONDS - start))
			next=$((next + 20))
		fi
	done
	exec {fd}>&-
	# A second signal ends a wait, not the command.
	while :; do
		status=0
		wait "$run_pid" || status=$?
		[[ -d /proc/$run_pid ]] || break
	done
	trap - INT TERM HUP
	[[ -t 2 ]] && printf '\r\033[K' >&2
	if [[ $run_signal ]]; then
		say "$what: interrupted"
		return 130
	fi
	if ((status)); then
		say "$what: failed after $((SECONDS - start)) s, status $status; the end of $log:"
		grep -nE '(^|[^a-z])(error|Error|ERROR)[:[]' "$log" | tail -n 10 | sed 's/^/  ! /' >&2 || :
		tail -n 25 "$log" | sed 's/^/  | /' >&2
		return "$status"
	fi
	say "$what: done in $((SECONDS - start)) s"
}

without_lock()
{
	[[ -z ${lock_fd:-} ]] || exec {lock_fd}>&-
	"$@"
}

show_progress()
{
	local text steps last

	steps=$(wc -l <"$3")
	last=$(tail -n 1 "$3" | tr -dc '[:print:]' | tr -s ' ')
	text="$2: $4 s, $steps steps, ${last# }"
	if [[ $1 ]]; then
		printf '\r%s\033[K' "${text:0:$((${COLUMNS:-80} - 1))}" >&2
	else
		say "  $text"
	fi
}

# Ends the script as the signal noted by run_long would have.
end_if_interrupted()
{
	[[ ${run_signal:-} ]] || return 0
	trap - "$run_signal"
	kill -s "$run_signal" "$$"
}
