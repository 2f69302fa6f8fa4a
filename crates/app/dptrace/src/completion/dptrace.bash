# bash completion of dptrace: `dptrace completions bash`. It asks the program, which knows processes, scripts, and what is in
# a trace. It needs nothing but bash.

_dptrace() {
    local rest=${COMP_LINE:0:COMP_POINT} blanks piece previous program answer line offers value about
    local -a words=() values=() abouts=()
    local -i i longest=0
    COMPREPLY=()

    # The words as they were typed: COMP_WORDS are also split at the characters of COMP_WORDBREAKS (= and :).
    for ((i = 0; i <= COMP_CWORD; i++)); do
        blanks=${rest%%[![:blank:]]*}
        rest=${rest:${#blanks}}
        previous=$piece
        piece=${COMP_WORDS[i]}
        ((i == COMP_CWORD)) && piece=$rest
        rest=${rest:${#piece}}
        if ((i == 0)) || [[ $blanks ]]; then
            words+=("$piece")
        else
            words[${#words[@]} - 1]+=$piece
        fi
    done
    # Behind > and < there is a file, which is bash's own matter.
    [[ $previous =~ ^[0-9\&]*[\<\>]+[\&\|]?$ ]] && return

    program=${words[0]/#\~\//$HOME/}
    type -P -- "$program" >/dev/null 2>&1 || program=dptrace
    answer=$("$program" complete bash -- "${words[@]:1}" 2>/dev/null </dev/null) || return
    offers=${answer%%$'\n'*}
    while IFS= read -r line; do
        [[ $line == *$'\t'* ]] || continue
        value=${line%%$'\t'*} about=${line#*$'\t'}
        # Readline replaces only what is behind the last = or :.
        line=${words[-1]}
        [[ $piece == [=:]* ]] || line=${line%"$piece"}
        [[ $line ]] && value=${value#"$line"}
        values+=("$value") abouts+=("$about")
        ((${#value} > longest)) && longest=${#value}
    done <<<"$answer"

    if [[ $offers == *nospace* ]]; then
        compopt -o nospace 2>/dev/null
        # Readline closes an open quote behind the only candidate, also if something must follow.
        ((${#values[@]} == 1)) && [[ $piece == [\"\']* ]] && values+=("${values[0]}=")
    fi
    case $offers in
    files*)
        # Beside our own candidates; if there is none, bash completes files by itself.
        if ((${#values[@]})); then
            compopt -o filenames 2>/dev/null
            COMPREPLY=("${values[@]}")
            while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "${piece#[\"\']}")
        fi
        return
        ;;
    directories*) compopt +o default -o dirnames 2>/dev/null && return ;;
    commands*) while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -c -- "$piece" | sort -u) ;;
    *) compopt +o default 2>/dev/null ;;
    esac

    # Descriptions, in a list only: one candidate is inserted, and so is each of those of menu-complete (37, %) and
    # insert-completions (42, *).
    if ((${#values[@]} > 1 && COMP_TYPE != 37 && COMP_TYPE != 42)); then
        local -i width=$((${COLUMNS:-80} - longest - 5))
        for i in "${!values[@]}"; do
            about=${abouts[i]}
            ((${#about} > width)) && about=${about:0:width > 3 ? width - 3 : 0}...
            printf -v line '%-*s  (%s)' "$longest" "${values[i]}" "$about"
            [[ ${abouts[i]} ]] || line=${values[i]}
            COMPREPLY+=("$line")
        done
    elif ((${#values[@]})); then
        COMPREPLY+=("${values[@]}")
    fi
}

complete -o nosort -o default -F _dptrace dptrace 2>/dev/null || complete -o default -F _dptrace dptrace
