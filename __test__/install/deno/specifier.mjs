import * as cofferdam from 'npm:cofferdam@0';
import { visit } from './visit.cjs';

await visit(cofferdam);
