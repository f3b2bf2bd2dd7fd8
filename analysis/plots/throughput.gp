# Throughput against threads, one line an allocator, intervals as bars, the oversubscribed region shaded.
name = 'throughput'
format = ARG1
height = 3.4
load 'common.gp'
load 'throughput-vars.gp'
set rmargin label_width
set tmargin 2
set logscale x 2
set xrange [x_low:x_high]
set yrange [0:y_high]
set xlabel 'threads'
set ylabel 'million operations a second, all threads'
load 'throughput-labels.gp'
plot for [i=1:series] 'throughput.dat' index i-1 using 1:2 with lines lt lt_of[i] lw 1.6, \
     for [i=1:series] '' index i-1 using 1:3:(0):($4-$3) with vectors nohead lt lt_of[i] dt 1 lw 2.5, \
     for [i=1:series] '' index i-1 using 1:5:(0):($6-$5) with vectors nohead lt lt_of[i] dt 1 lw 0.7, \
     for [i=1:series] '' index i-1 using 1:2 with points lt lt_of[i] pt 7 ps 0.35
