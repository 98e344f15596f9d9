#!/bin/sh
# Finds what the course needs from the system, and names what is missing with the command that cures it.
# Why: "ensurepip is not available" or "setting up uid map: Permission denied" tells a newcomer nothing.
#
#   tools/need.sh folder            this folder can be written
#   tools/need.sh python [NAME]     prints a Python of 3.11 or later that can make a virtual environment
#   tools/need.sh sandbox           bubblewrap is there and the kernel lets it work
#   tools/need.sh browser [PYTHON]  a Chromium for the figure's test; never fails, it warns
#   tools/need.sh database          a PostgreSQL server for its test; never fails, it warns
#   tools/need.sh after-pip         says why pip may have failed
#
# What is missing is installed where that needs no question (root, or sudo without a password), by apt-get, dnf or
# pacman. Otherwise the command is printed and the exit code is 1. Kernel settings are never changed, only named.
# COURSE_INSTALL=no forbids installing.
set -u

say() { printf '%s\n' "$*" >&2; }

# stop WHAT CURE...: one line for what is missing, then the commands, ready to be copied.
stop() {
    say ""
    say "Missing: $1"
    shift
    [ $# -eq 0 ] || say "Cure:"
    for line in "$@"; do say "    $line"; done
    say ""
    exit 1
}

# as_root COMMAND...: runs it with the right to install, or fails without asking for a password.
as_root() {
    if [ "${COURSE_INSTALL:-yes}" = no ]; then
        return 1
    elif [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        sudo -n "$@"
    else
        return 1
    fi
}

may_install() { as_root true; }

manager() {
    for tool in apt-get dnf pacman; do
        command -v $tool >/dev/null 2>&1 && { echo $tool; return; }
    done
    echo none
}

sudo_word() {
    [ "$(id -u)" = 0 ] && return
    if command -v sudo >/dev/null 2>&1; then printf 'sudo '; else printf '(as root) '; fi
}

# command_for PACKAGE: the line a person would type here.
command_for() {
    case $(manager) in
        apt-get) echo "$(sudo_word)apt-get update && $(sudo_word)apt-get install -y $1" ;;
        dnf) echo "$(sudo_word)dnf install -y $1" ;;
        pacman) echo "$(sudo_word)pacman -S --needed $1" ;;
        none) echo "(install the package $1 with your system's package manager)" ;;
    esac
}

# install PACKAGE: quietly where that works, with the whole output where it does not.
install() {
    may_install || return 1
    say "Installing $1 ..."
    log=$(mktemp) || return 1
    case $(manager) in
        apt-get)
            as_root env DEBIAN_FRONTEND=noninteractive apt-get update >"$log" 2>&1 </dev/null
            as_root env DEBIAN_FRONTEND=noninteractive \
                apt-get install -y --no-install-recommends "$1" >>"$log" 2>&1 </dev/null ;;
        dnf) as_root dnf install -y "$1" >"$log" 2>&1 </dev/null ;;
        pacman) as_root pacman -S --needed --noconfirm "$1" >"$log" 2>&1 </dev/null ;;
        *) false ;;
    esac
    code=$?
    [ $code -eq 0 ] || { say "That did not work:"; tail -n 15 "$log" >&2; }
    rm -f "$log"
    return $code
}

# ---- the folder --------------------------------------------------------------------------------

need_folder() {
    for folder in . .venv _build class; do
        [ -e "$folder" ] || continue
        if ! { probe=$(mktemp "$folder/.probe.XXXXXX" 2>/dev/null) && rm -f "$probe"; }; then
            stop "permission for $(id -un) to write in $(cd "$folder" && pwd)" \
                "sudo chown -R $(id -un) '$(pwd)'" \
                "or clone the course into a folder of your own, for instance under $HOME"
        fi
    done
}

# ---- Python ------------------------------------------------------------------------------------

recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
makes_venv() { "$1" -c 'import venv, ensurepip' >/dev/null 2>&1; }
version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

# Debian and Ubuntu split venv off, one package for each Python; elsewhere it comes with Python.
venv_package() {
    case $(manager) in
        apt-get) echo "python$(version "$1")-venv" ;;
        dnf) echo "python3-libs" ;;
        *) echo "python" ;;
    esac
}

need_python() {
    candidates=${1:-python3.13 python3.12 python3.11 python3}
    fallback=
    # The environment that is about to be remade is no Python to remake it with.
    PATH=$(printf '%s' "$PATH" | tr ':' '\n' | grep -vxF "$(pwd)/.venv/bin" | paste -sd: -)
    for name in $candidates; do
        recent "$name" || continue
        makes_venv "$name" && { command -v "$name"; return; }
        [ -n "$fallback" ] || fallback=$name
    done
    if [ -z "$fallback" ]; then
        found=
        for name in $candidates; do
            found="$found${found:+, }$name $("$name" -c 'import platform; print(platform.python_version())' \
                2>/dev/null || echo 'not found')"
        done
        case $(manager) in
            apt-get)
                if command -v python3 >/dev/null 2>&1; then
                    package="python3.11 python3.11-venv"
                else
                    package="python3 python3-venv"
                fi ;;
            dnf) package=python3.11 ;;
            *) package=python ;;
        esac
        stop "Python 3.11 or later (here: $found)" \
            "$(command_for "$package")" \
            "or leave PYTHON out, or name another: make PYTHON=/path/to/python3.12 ..."
    fi
    package=$(venv_package "$fallback")
    install "$package" && makes_venv "$fallback" && { command -v "$fallback"; return; }
    stop "the venv module of $(command -v "$fallback") ($(version "$fallback"))" "$(command_for "$package")"
}

# ---- the sandbox -------------------------------------------------------------------------------

walls_stand() {
    bwrap --unshare-all --die-with-parent --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp true 2>/dev/null
}

setting() { cat "/proc/sys/$1" 2>/dev/null; }

in_container() {
    [ -e /.dockerenv ] || [ -e /run/.containerenv ] || grep -qsE 'docker|containerd|kubepods' /proc/1/cgroup
}

forbidden() {
    reason=$(bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp true 2>&1 | head -n 1)
    if [ "$(setting kernel/apparmor_restrict_unprivileged_userns)" = 1 ] && [ "$(id -u)" != 0 ]; then
        stop "the kernel's leave for bubblewrap: AppArmor forbids user namespaces here ($reason)" \
            "printf '%s\\n' 'abi <abi/4.0>,' 'include <tunables/global>' \\" \
            "  'profile bwrap $(command -v bwrap) flags=(unconfined) { userns, }' | sudo tee /etc/apparmor.d/bwrap" \
            "sudo apparmor_parser -r /etc/apparmor.d/bwrap" \
            "or, until the next start of this machine and for every program:" \
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    elif [ "$(setting user/max_user_namespaces)" = 0 ]; then
        stop "the kernel's leave for bubblewrap: this machine allows no user namespace ($reason)" \
            "$(sudo_word)sysctl -w user.max_user_namespaces=15000"
    elif [ "$(setting kernel/unprivileged_userns_clone)" = 0 ] && [ "$(id -u)" != 0 ]; then
        stop "the kernel's leave for bubblewrap: only root may make user namespaces here ($reason)" \
            "sudo sysctl -w kernel.unprivileged_userns_clone=1"
    elif in_container; then
        stop "the container's leave for bubblewrap ($reason)" \
            "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined \\" \
            "           --security-opt systempaths=unconfined ..." \
            "or, with more rights than are needed: docker run --privileged ..."
    fi
    stop "the kernel's leave for bubblewrap ($reason)" \
        "Grade on a machine of your own or in a virtual machine. Reading and solving need no sandbox:" \
        "make book"
}

need_sandbox() {
    if [ "$(uname -s)" != Linux ]; then
        stop "a sandbox: bubblewrap exists on Linux only, and this is $(uname -s)" \
            "Grade in a Linux machine, virtual machine or WSL. Reading and solving work here:" \
            "make book"
    fi
    if ! command -v bwrap >/dev/null 2>&1; then
        install bubblewrap && command -v bwrap >/dev/null 2>&1 ||
            stop "bubblewrap, the sandbox around students' code" "$(command_for bubblewrap)"
    fi
    walls_stand || forbidden
}

# ---- the browser -------------------------------------------------------------------------------

# A browser from a snap cannot read the test's profile folder, and Ubuntu's package is only a door to that snap.
system_browser() {
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        path=$(command -v $name 2>/dev/null) || continue
        case $(readlink -f "$path") in */snap/* | */snap) continue ;; esac
        grep -qs '/snap/bin' "$path" && continue
        return 0
    done
    return 1
}

own_browser() {
    [ -x "$1" ] && "$1" - >/dev/null 2>&1 <<'PYTHON'
import os, sys
from playwright.sync_api import sync_playwright
with sync_playwright() as p:
    sys.exit(not os.path.exists(p.chromium.executable_path))
PYTHON
}

is_ubuntu() { grep -qsE '^(ID|ID_LIKE)="?[^"]*ubuntu' /etc/os-release; }

need_browser() {
    python=${1:-.venv/bin/python}
    system_browser && return
    own_browser "$python" && return
    if ! is_ubuntu && [ "$(manager)" != none ]; then
        install chromium && system_browser && return
        cure=$(command_for chromium)
    else
        cure="$python -m playwright install --with-deps chromium"
        if may_install; then
            say "Installing Chromium with Playwright ..."
            "$python" -m playwright install --with-deps chromium >&2 </dev/null
        else
            "$python" -m playwright install chromium >&2 </dev/null
        fi
        own_browser "$python" && return
    fi
    say ""
    say "WARNING: no Chromium on this machine: the test of the interactive figure will be SKIPPED."
    say "Cure:"
    say "    $cure"
    say ""
}

# ---- the database ------------------------------------------------------------------------------

# Debian keeps the server's programs out of the search path, one folder for each version.
server() {
    command -v initdb >/dev/null 2>&1 && return
    for program in /usr/lib/postgresql/*/bin/initdb; do [ -x "$program" ] && return; done
    return 1
}

need_database() {
    server && return
    case $(manager) in
        dnf) package=postgresql-server ;;
        *) package=postgresql ;;
    esac
    install "$package" && server && return
    say ""
    say "WARNING: no PostgreSQL on this machine: the tests of a grade book in PostgreSQL will be SKIPPED."
    say "Cure:"
    say "    $(command_for "$package")"
    say ""
}

# ---- after a failed pip ------------------------------------------------------------------------

after_pip() {
    say ""
    say "pip could not install the requirements; its own last lines are above."
    free=$(df -Pk . | awk 'NR == 2 { print int($4 / 1048576) }')
    [ "${free:-99}" -ge 8 ] ||
        say "  - $free GiB are free here; torch with its GPU libraries wants up to 8. Free some."
    if ! command -v cc >/dev/null 2>&1 && ! command -v gcc >/dev/null 2>&1; then
        case $(manager) in
            apt-get) tools="build-essential python3-dev" ;;
            dnf) tools="gcc gcc-c++ python3-devel" ;;
            *) tools=gcc ;;
        esac
        say "  - If it tried to compile: there is no C compiler here. Cure:"
        say "    $(command_for "$tools")"
    fi
    say "  - If it found no matching version: Python 3.11, 3.12 and 3.13 have every package ready-made. Cure:"
    say "    rm -rf .venv && make PYTHON=python3.12 ..."
    say "  - If the network failed: run the same command again, it goes on where it stopped."
    say ""
    exit 1
}

case ${1:-} in
    folder) need_folder ;;
    python) need_python "${2:-}" ;;
    sandbox) need_sandbox ;;
    browser) need_browser "${2:-}" ;;
    database) need_database ;;
    after-pip) after_pip ;;
    *) sed -n '2,15s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
