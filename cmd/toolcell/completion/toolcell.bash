# Completion of toolcell for bash: source <(toolcell completion bash)
_toolcell() {
    local candidate
    COMPREPLY=()
    while IFS=$'\t' read -r candidate _; do
        case $candidate in
            :files) compopt -o default ;; # where there is no candidate
            :dirs) compopt -o dirnames ;;
            *) COMPREPLY+=("$candidate") ;;
        esac
    done < <("${COMP_WORDS[0]}" __complete bash "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
}
complete -F _toolcell toolcell
