# Completion of toolcell for fish: toolcell completion fish | source
function __toolcell_complete
    set -l tokens (commandline -opc) (commandline -ct)
    for line in ($tokens[1] __complete fish $tokens[2..-1] 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path (commandline -ct)
            case ':dirs'
                __fish_complete_directories (commandline -ct)
            case '*'
                echo $line
        end
    end
end
complete -c toolcell -f -a '(__toolcell_complete)'
