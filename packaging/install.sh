#!/bin/sh
# Installs a release of dptrace for Linux on x86-64 or aarch64, or removes it again:
#
#     curl -fsSL https://github.com/dptrace/dptrace/releases/latest/download/install.sh | sh
#     curl -fsSL https://github.com/dptrace/dptrace/releases/latest/download/install.sh | sh -s -- --uninstall
#
# It goes to /usr/local for root, and to ~/.local for others. Variables:
#
#     PREFIX            another folder
#     DPTRACE_VERSION   a version other than the latest one: 0.1.0
#     DPTRACE_URL       another place that has the release's files: an address, file:///DIR
#
# It downloads the archive of this machine and SHA256SUMS, and stops before it has written anything if they do not agree. It
# starts and enables nothing. PREFIX/share/dptrace/installed lists what it wrote: --uninstall removes that, and no more.
# docs/install.md has more, such as the check of where the files come from.
set -eu
umask 022

REPOSITORY=https://github.com/dptrace/dptrace

say() { printf '%s\n' "$*"; }

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

usage() {
    say "Usage: install.sh [--uninstall]"
    say "Installs dptrace into PREFIX (default: /usr/local for root, ~/.local for others), or removes it."
    say "Variables: PREFIX, DPTRACE_VERSION, DPTRACE_URL"
}

# Prints the folder to install into.
prefix() {
    if [ -n "${PREFIX:-}" ]; then
        folder=${PREFIX%/}
    elif [ "$(id -u)" -eq 0 ]; then
        folder=/usr/local
    else
        folder=${HOME:?is not set}/.local
    fi
    case $folder in
        # Units of systemd have the path, too.
        *[!A-Za-z0-9/._+-]* | *..*) fail "the folder's path may have letters, digits and /._+- only: $folder" ;;
        /*) say "$folder" ;;
        *) fail "the folder's path must begin with /: $folder" ;;
    esac
}

# Prints the name that the release has for this machine's processor.
architecture() {
    [ "$(uname -s)" = Linux ] || fail "dptrace needs Linux, and this is $(uname -s)"
    case $(uname -m) in
        x86_64 | amd64) say x86_64 ;;
        aarch64 | arm64) say aarch64 ;;
        *) fail "there is no release for $(uname -m): only for x86_64 and aarch64" ;;
    esac
}

# Prints the address of the folder with the release's files.
address() {
    if [ -n "${DPTRACE_URL:-}" ]; then
        say "${DPTRACE_URL%/}"
    elif [ -n "${DPTRACE_VERSION:-}" ]; then
        say "$REPOSITORY/releases/download/v$DPTRACE_VERSION"
    else
        say "$REPOSITORY/releases/latest/download"
    fi
}

# Downloads the file $1 to $2.
download() {
    if command -v curl >/dev/null; then
        curl -fsSL -o "$2" "$1" || fail "cannot download $1"
    elif command -v wget >/dev/null; then
        wget -q -O "$2" "$1" || fail "cannot download $1"
    else
        fail "neither curl nor wget is installed"
    fi
}

# Prints the SHA-256 of the file $1.
checksum() {
    if command -v sha256sum >/dev/null; then
        sum=$(sha256sum "$1")
    else
        sum=$(shasum -a 256 "$1") || fail "neither sha256sum nor shasum is installed"
    fi
    say "${sum%% *}"
}

# Sets $archive and $expected to the name and the checksum of the archive for $1, from the list $2.
find_archive() {
    archive='' expected=''
    while read -r sum name; do
        name=${name#\*}
        case $name in
            */*) ;;
            dptrace-[0-9]*-"$1".tar.gz)
                [ -z "$archive" ] || fail "SHA256SUMS names two archives for $1: $archive, $name"
                archive=$name expected=$sum
                ;;
        esac
    done <"$2"
    [ -n "$archive" ] || fail "SHA256SUMS names no archive for $1"
}

# Creates the folder $1 below $to, and those above it. Lists those that were not there.
make_folder() {
    [ ! -d "$to/$1" ] || return 0
    case $1 in
        */*) make_folder "${1%/*}" ;;
    esac
    mkdir "$to/$1"
    made="$made$1
"
}

# Installs the file $1 as $2 below $to, with the mode $3.
put() {
    cp "$1" "$to/$2.new"
    chmod "$3" "$to/$2.new"
    # A program that runs cannot be written to, but another one can have its name.
    mv -f "$to/$2.new" "$to/$2"
    say "file $2" >>"$to/$list"
}

# Installs the files of the folder $1 into $2 below $to.
put_all() {
    made=''
    make_folder "$2"
    list_folders
    for file in "$1"/*; do
        [ ! -f "$file" ] || put "$file" "$2/${file##*/}" 644
    done
}

# Writes the folders that were made into the list.
list_folders() {
    printf '%s' "$made" | while read -r folder; do
        say "folder $folder" >>"$to/$list"
    done
}

# Installs what the unpacked archive $1 has.
put_release() {
    made=''
    if [ ! -d "$to" ]; then
        mkdir -p "$to"
        # An empty path: the folder itself.
        made='
'
    fi
    make_folder bin
    make_folder share/dptrace
    : >"$to/$list"
    say "file $list" >>"$to/$list"
    list_folders
    put "$1/dptrace" bin/dptrace 755
    put_all "$1/man" share/man/man1
    put_all "$1/completions/bash" share/bash-completion/completions
    put_all "$1/completions/zsh" share/zsh/site-functions
    put_all "$1/completions/fish" share/fish/vendor_completions.d
    put_all "$1/docs" share/doc/dptrace/docs
    for file in LICENSE README.md CHANGELOG.md THIRD-PARTY.md; do
        put "$1/$file" "share/doc/dptrace/$file" 644
    done
    for folder in "$1"/share/*; do
        put_all "$folder" "share/dptrace/${folder##*/}"
    done
    # Units name the program by its path.
    for unit in "$1"/systemd/*; do
        sed "s,=/usr/bin/dptrace,=$to/bin/dptrace," "$unit" >"$unit.here"
        mv "$unit.here" "$unit"
    done
    put_all "$1/systemd" lib/systemd/system
}

# Removes what an earlier run has installed.
remove() {
    folders=''
    while read -r kind path; do
        case $path in
            *..*) fail "$to/$list is no list of this program" ;;
        esac
        case $kind in
            file) rm -f "$to/$path" ;;
            folder)
                folders="$path
$folders"
                ;;
        esac
    done <"$to/$list"
    # A folder goes if nothing of others is in it; one within another one goes first.
    printf '%s' "$folders" | while read -r folder; do
        rmdir "$to/$folder" 2>/dev/null || :
    done
}

install() {
    arch=$(architecture)
    from=$(address)
    if [ -e "$to/bin/dptrace" ] && [ ! -e "$to/$list" ]; then
        fail "$to/bin/dptrace exists, and is not from this script: remove it, or name another PREFIX"
    fi
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM
    download "$from/SHA256SUMS" "$work/SHA256SUMS"
    find_archive "$arch" "$work/SHA256SUMS"
    download "$from/$archive" "$work/$archive"
    actual=$(checksum "$work/$archive")
    [ "$actual" = "$expected" ] ||
        fail "$archive is not the file that SHA256SUMS names: $actual, not $expected. Nothing was installed"
    tar -xzof "$work/$archive" -C "$work"
    [ -x "$work/${archive%.tar.gz}/dptrace" ] || fail "$archive has no program"
    [ ! -e "$to/$list" ] || remove
    put_release "$work/${archive%.tar.gz}"
    say "$("$to/bin/dptrace" -V) is installed: $to/bin/dptrace"
    case ":$PATH:" in
        *":$to/bin:"*) ;;
        *) say "note: $to/bin is not in your PATH" ;;
    esac
    say "To remove it: curl -fsSL $from/install.sh | PREFIX=$to sh -s -- --uninstall"
}

# The last line calls it: of a script that came in part only, nothing runs.
main() {
    to=$(prefix)
    list=share/dptrace/installed
    case ${1:-} in
        '') install ;;
        --uninstall)
            [ -e "$to/$list" ] || fail "nothing of this script is in $to: there is no $to/$list"
            remove
            say "dptrace is removed from $to"
            ;;
        -h | --help) usage ;;
        *)
            usage >&2
            exit 2
            ;;
    esac
}

main "$@"
