#compdef toolcell
# Completion of toolcell for zsh: source <(toolcell completion zsh), or this file
# as _toolcell in a folder of $fpath.
_toolcell() {
    local line value program=${(Q)words[1]}
    local -a found described
    program=${~program}
    found=("${(@f)$("$program" __complete zsh "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    for line in $found; do
        case $line in
            :files) _files; return ;;
            :dirs) _files -/; return ;;
        esac
        value=${line%%$'\t'*}
        described+=("${value//:/\\:}:${line#*$'\t'}")
    done
    (( $#described )) && _describe toolcell described
}
if [[ $funcstack[1] == _toolcell ]]; then
    _toolcell "$@"
else
    compdef _toolcell toolcell
fi
