# The model's terms stacked beside what was measured, one bar an allocator and thread count.
name = 'model'
format = ARG1
load 'model-vars.gp'
height = 1.2 + 0.2 * rows
load 'common.gp'
set lmargin label_width
set xrange [x_low:x_high]
set yrange [rows + 0.6:0.4]
set rmargin 7
set grid noytics xtics
set xlabel 'ns of thread time an operation'
set key on outside top left horizontal reverse Left samplen 1.2 maxcols 3
load 'model-labels.gp'
plot 'model.dat' using (0):1:2:3:($1-0.32):($1+0.32) with boxxyerror lc rgb '#707070' title 'harness loop', \
     '' using (0):1:3:4:($1-0.32):($1+0.32) with boxxyerror lc rgb '#56B4E9' title 'T_metadata', \
     '' using (0):1:4:5:($1-0.32):($1+0.32) with boxxyerror lc rgb '#CC79A7' title 'T_os', \
     '' using (0):1:5:6:($1-0.32):($1+0.32) with boxxyerror lc rgb '#c8c8c8' title (not_split ? 'not split' : ''), \
     '' using (0):1:6:7:($1-0.32):($1+0.32) with boxxyerror lc rgb '#eadfb8' title 'single-thread gap', \
     '' using (0):1:7:8:($1-0.32):($1+0.32) with boxxyerror lc rgb '#D55E00' title 'joint residual', \
     '' using 9:1:10:11 with xerrorbars lc rgb '#202020' pt 7 ps 0.5 lw 1.2 title 'measured'
