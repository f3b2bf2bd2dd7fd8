# Resident memory over live bytes, split into what size classes round up and the rest.
name = 'rss'
format = ARG1
load 'rss-vars.gp'
height = 1.1 + 0.24 * rows
load 'common.gp'
set lmargin label_width
set xrange [x_low:x_high]
set yrange [rows + 0.6:0.4]
set grid noytics xtics
set xlabel 'MB resident beyond the requested live bytes and the harness'
set arrow from 0, graph 0 to 0, graph 1 nohead lc rgb '#404040' lw 1 front
set key on outside top left horizontal reverse Left samplen 1.2
load 'rss-labels.gp'
plot 'rss.dat' using (0.5*$2):1:(0):2:($1-0.3):($1+0.3) with boxxyerror lc rgb '#9ecae1' title 'internal (usable - requested)', \
     '' using (0.5*($2+$3)):1:2:3:($1-0.3):($1+0.3) with boxxyerror lc rgb '#e6a96b' title 'external and metadata', \
     '' using 3:1:4:5 with xerrorbars lc rgb '#202020' pt 7 ps 0.5 lw 1.2 title 'total, with interval'
